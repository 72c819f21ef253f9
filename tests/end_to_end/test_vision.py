"""The vision tasks from the command line: the built-in checkpoint, and tiny random ones of the
architectures of the paper's vision backbones, with every step of the way."""

from pathlib import Path

import pandas as pd
import pytest
from safetensors import safe_open

import smmd_bench as sb

from ..tiny_vlms import ARCHITECTURES, build_vlm
from .conftest import cells

pytestmark = pytest.mark.engine


CLOCKS = (
    "train-eval --task clock_time --losses smmd --no-base --train-examples 48 "
    "--epochs 1 --validation-examples 12 --test-examples 144 --out"
)


@pytest.fixture(scope="module")
def clocks(finish, tmp_path_factory):
    """The run of the built-in vision model, and what it printed."""
    out = tmp_path_factory.mktemp("clocks") / "run"
    return out, finish(CLOCKS, out).stdout


def test_the_built_in_vision_model_reads_clocks_above_chance(clocks, finish):
    out, text = clocks
    assert text.startswith(
        "Models: tiny-vl (built in) (float32, Qwen2Tokenizer, N = 10)"
    )
    assert "Nothing to do" in finish(CLOCKS, out).stdout

    values = cells(out)["tiny-vl", "smmd"].metrics["metrics"]
    assert values["exact_match"]["low"] > 10  # percent; chance is 0.7
    assert values["time_gap_wrapped"]["value"] < 170  # minutes; chance is 180


def test_every_cell_has_the_picture_of_each_completion_and_probes_of_four_digits(
    clocks,
):
    for cell in cells(clocks[0]).values():
        frame = pd.read_parquet(cell.place("completions"))
        assert len(frame) == 144
        assert all(Path(file).is_file() for file in frame["image"])
        assert set(pd.read_parquet(cell.place("probes"))["digit"]) == {0, 1, 2, 3}


def test_the_reports_of_drawn_clocks_say_that_they_are_synthetic(clocks):
    out, _ = clocks
    data = sb.read_run(out).manifest["data"]["clock_time"]
    assert data["identity"]["test"]["source"] == "synthetic"

    reports = out / "reports"
    table = pd.read_csv(reports / "tables/clock_table.csv")
    assert "SMMD" in table["Loss"].values
    assert "synthetic" in (reports / "tables/clock_table.md").read_text()

    figures = {file.stem for file in (reports / "figures").glob("*.png")}
    assert {"digit_distribution", "dataset_samples"} <= figures
    assert not {"digit_probe", "error_histogram", "signed_errors"} & figures
    # 12 of the clocks show 5, which are too few for a figure; the others are of numbers
    assert (reports / "tables/digit_probe.csv").is_file()


@pytest.mark.slow
def test_the_architectures_of_the_backbones(finish, tmp_path):
    models = [w for a in ARCHITECTURES for w in ("--model", build_vlm(a, tmp_path / a))]
    words = (
        "train-eval --task clock_time --losses ce,smmd --train-examples 16 --epochs 2 "
        "--validation-examples 4 --test-examples 6 --set batch_size=8 --set micro_batch_size=4 "
        "--set learning_rate=1e-2 --out"
    )
    run = tmp_path / "run"
    output = finish(words, run, *models)
    described = sb.read_run(run).described

    for (name, loss), cell in cells(run).items():
        engine = "transformers" if name == "mllama" else "vllm"
        assert described[cell.address]["engine"] == engine
        assert len(pd.read_parquet(cell.place("completions"))) == 6
        assert cell.metrics is not None
        if loss != "base":
            require_adapter_of_language(cell.checkpoint)

    assert {name for name, _ in cells(run)} == set(ARCHITECTURES)
    assert "mllama is decoded with transformers, not vllm: " in output.stdout


def require_adapter_of_language(folder):
    """Require that an adapter is of the language model alone."""
    with safe_open(folder / "adapter_model.safetensors", "pt") as adapter:
        keys = [*adapter.keys()]
    assert keys
    for key in keys:
        assert "language_model" in key
        assert "vision" not in key
        assert "visual" not in key
