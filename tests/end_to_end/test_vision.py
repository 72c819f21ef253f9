"""The vision tasks from the command line: the built-in checkpoint, and tiny random ones of the
architectures of the paper's vision backbones, with every step of the way."""

from pathlib import Path

import pandas as pd
import pytest
from safetensors import safe_open

from ..tiny_vlms import ARCHITECTURES, build_vlm
from .conftest import cells, content

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def clocks(finish, tmp_path_factory):
    """The run, and what it printed."""
    out = tmp_path_factory.mktemp("clocks") / "run"
    words = (
        "train-eval --task clock_time --losses ce,smmd --train-examples 144 "
        "--epochs 1 --validation-examples 36 --test-examples 144 --out"
    )
    said = finish(words, out)
    assert "Nothing to do" in finish(words, out).stdout
    return out, said.stdout


def test_a_vision_task_takes_the_built_in_vision_model(clocks):
    out, text = clocks
    assert text.startswith("tiny-vl (built in): float32, ")
    assert text.splitlines()[1].startswith("tiny-vl (built in) on clock_time: ")
    tables = text[text.index("Did the loss help?") :]
    assert max(map(len, tables.splitlines()[:-3])) <= 100
    manifest = content(out, "manifest.json")
    assert manifest["data"]["clock_time"]["identity"]["test"]["source"] == "synthetic"
    table = pd.read_csv(out / "reports" / "tables" / "clock_table.csv")
    assert set(table["Loss"]) >= {"CE", "SMMD"}
    assert "synthetic" in (out / "reports" / "tables" / "clock_table.md").read_text()


def test_the_built_in_model_reads_clocks_above_chance(clocks):
    values = content(cells(clocks[0])["tiny-vl", "base"], "metrics.json")["metrics"]
    assert values["exact_match"]["low"] > 10  # percent; chance is 0.7
    assert values["time_gap_wrapped"]["value"] < 170  # minutes; chance is 180


def test_every_example_keeps_its_picture_and_hours_of_30_examples_are_drawn(clocks):
    for folder in cells(clocks[0]).values():
        frame = pd.read_parquet(folder / "completions.parquet")
        assert len(frame) == 144
        assert all(Path(file).is_file() for file in frame["image"])
        probes = pd.read_parquet(folder / "probes.parquet")
        assert set(probes["digit"]) == {0, 1, 2, 3}
    figures = {file.stem for file in (clocks[0] / "reports" / "figures").glob("*.png")}
    assert {"digit_distribution", "dataset_samples", "training_curves"} <= figures
    assert "digit_probe" not in figures  # 12 of the clocks show 5
    assert (clocks[0] / "reports" / "tables" / "digit_probe.csv").is_file()
    assert not {"error_histogram", "signed_errors"} & figures  # of numbers, not of times


@pytest.mark.slow
def test_the_architectures_of_the_backbones(finish, tmp_path):
    models = [w for a in ARCHITECTURES for w in ("--model", build_vlm(a, tmp_path / a))]
    words = (
        "train-eval --task clock_time --losses ce,smmd --train-examples 16 --epochs 2 "
        "--validation-examples 4 --test-examples 6 --set batch_size=8 --set micro_batch_size=4 "
        "--set learning_rate=1e-2 --out"
    )
    run = tmp_path / "run"
    said = finish(words, run, *models)
    for (name, loss), folder in cells(run).items():
        engine = "transformers" if name == "mllama" else "vllm"
        assert content(folder, "cell.json")["engine"] == engine
        assert len(pd.read_parquet(folder / "completions.parquet")) == 6
        assert (folder / "metrics.json").is_file()
        if loss != "base":  # adapters are of the language model alone
            with safe_open(folder / "checkpoint" / "adapter_model.safetensors", "pt") as adapter:
                keys = list(adapter.keys())
            assert keys
            assert all("language_model" in key for key in keys)
            assert not [key for key in keys if "vision" in key or "visual" in key]
    assert {name for name, _ in cells(run)} == set(ARCHITECTURES)
    assert "mllama is decoded with transformers, not vllm: " in said.stdout
    assert "not vllm" in content(cells(run)["mllama", "ce"], "cell.json")["engine_note"]
    used = content(run, "manifest.json")["generation"]["clock_time"]["engine"]
    assert {Path(model).name: engine["name"] for model, engine in used.items()} == {
        "qwen2_5_vl": "vllm", "mistral3": "vllm", "mllama": "transformers"
    }  # fmt: skip
