"""The vision tasks from the command line: the built-in checkpoint, and tiny random ones of the
architectures of the paper's vision backbones, with every step of the way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from PIL import Image
from safetensors import safe_open

from ..conftest import DATA
from ..tiny_vlms import ARCHITECTURES, build_vlm
from .conftest import CommandLine

pytestmark = pytest.mark.engine
LOSSES = ["ce", "gce", "ntl", "ntil", "smmd"]
FEW = [
    "--train-examples",
    "144",
    "--epochs",
    "1",
    "--validation-examples",
    "36",
    "--test-examples",
    "144",
]


def cells(run: Path) -> dict[tuple[str, str], Path]:
    """Cell folders by the last part of the model's name and loss."""
    found = {}
    for file in run.glob("cells/*/cell.json"):
        cell = json.loads(file.read_text())
        found[Path(cell["model"]).name, cell["loss"]] = file.parent
    return found


def content(folder: Path, name: str) -> Any:
    return json.loads((folder / name).read_text())


@pytest.fixture(scope="module")
def clocks(smmd_bench: CommandLine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("clocks") / "run"
    words = ["train-eval", "--task", "clock_time", "--losses", ",".join(LOSSES), *FEW]
    result = smmd_bench(*words, "--out", str(out))
    assert result.returncode == 0, result.stdout + result.stderr
    (out / "stdout.txt").write_text(result.stdout)
    again = smmd_bench(*words, "--out", str(out))
    assert again.returncode == 0, again.stderr
    assert "Nothing to do" in again.stdout
    return out


def test_a_vision_task_takes_the_built_in_vision_model(clocks: Path) -> None:
    text = (clocks / "stdout.txt").read_text()
    assert text.startswith("tiny-vl (built in) on clock_time: ")
    assert "Clock-Time results, synthetic clocks" in text
    tables = text[text.index("Clock-Time results") :]
    assert max(map(len, tables.splitlines()[:-3])) <= 100


def test_the_built_in_model_reads_clocks_above_chance(clocks: Path) -> None:
    values = content(cells(clocks)["tiny-vl", "base"], "metrics.json")["metrics"]
    assert values["exact_match"]["low"] > 10  # percent; chance is 0.7
    assert values["time_gap_wrapped"]["value"] < 170  # minutes; chance is 180


def test_manifest_and_table_say_synthetic(clocks: Path) -> None:
    manifest = content(clocks, "manifest.json")
    assert manifest["data"]["clock_time"]["identity"]["test"]["source"] == "synthetic"
    table = pd.read_csv(clocks / "reports" / "tables" / "clock_table.csv")
    assert set(table["Loss"]) >= {"CE", "SMMD"}
    assert "synthetic" in (clocks / "reports" / "tables" / "clock_table.md").read_text()


def test_every_example_keeps_its_picture_and_both_probe_figures_are_drawn(clocks: Path) -> None:
    for folder in cells(clocks).values():
        frame = pd.read_parquet(folder / "completions.parquet")
        assert len(frame) == 144
        assert all(Path(file).is_file() for file in frame["image"])
        probes = pd.read_parquet(folder / "probes.parquet")
        assert set(probes["digit"]) == {0, 1, 2, 3}
    figures = {file.stem for file in (clocks / "reports" / "figures").glob("*.png")}
    assert {"digit_distribution", "digit_probe", "dataset_samples", "training_curves"} <= figures
    assert not {"error_histogram", "signed_errors"} & figures  # of numbers, not of times


@pytest.mark.slow
def test_charts_end_to_end(smmd_bench: CommandLine, tmp_path: Path) -> None:
    words = ["train-eval", "--task", "chartqa[source=synthetic]", "--losses", "ce,smmd"]
    few = [
        "--train-examples",
        "32",
        "--epochs",
        "1",
        "--validation-examples",
        "16",
        "--test-examples",
        "16",
    ]
    result = smmd_bench(*words, *few, "--out", str(tmp_path / "run"))
    assert result.returncode == 0, result.stdout + result.stderr
    table = (tmp_path / "run" / "reports" / "tables" / "chart_table.md").read_text()
    assert "synthetic" in table
    assert "SMMD" in table


@pytest.mark.slow
def test_the_official_charts_are_read_from_a_local_copy(
    smmd_bench: CommandLine, tmp_path: Path
) -> None:
    words = ["train-eval", "--task", "chartqa", "--losses", "ce", "--data-dir", str(DATA)]
    few = [
        "--train-examples",
        "4",
        "--epochs",
        "1",
        "--validation-examples",
        "2",
        "--test-examples",
        "2",
    ]
    result = smmd_bench(*words, *few, "--no-base", "--out", str(tmp_path / "run"))
    assert result.returncode == 0, result.stdout + result.stderr
    (data,) = content(tmp_path / "run", "manifest.json")["data"].items()
    assert data[0] == "chartqa[source=official]"  # what `auto` meant is written down
    assert data[1]["identity"]["test"]["source"] == "official"


@pytest.fixture(scope="module")
def backbones(smmd_bench: CommandLine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("vlms")
    folders = [build_vlm(name, root / name) for name in ARCHITECTURES]
    models = [word for folder in folders for word in ("--model", str(folder))]
    few = [
        "--train-examples",
        "16",
        "--epochs",
        "2",
        "--validation-examples",
        "4",
        "--test-examples",
        "6",
    ]
    tuned = ["--set", "batch_size=8", "--set", "micro_batch_size=4", "--set", "learning_rate=1e-2"]
    words = ["train-eval", "--task", "clock_time", "--losses", "ce,smmd", *few, *tuned]
    result = smmd_bench(*words, *models, "--out", str(root / "run"))
    assert result.returncode == 0, result.stdout + result.stderr
    (root / "run" / "stdout.txt").write_text(result.stdout)
    return root / "run"


@pytest.mark.slow
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_adapters_are_of_the_language_model_alone(backbones: Path, name: str) -> None:
    for loss in ("ce", "smmd"):
        folder = cells(backbones)[name, loss]
        with safe_open(folder / "checkpoint" / "adapter_model.safetensors", "pt") as adapter:
            keys = list(adapter.keys())
        assert keys
        assert all("language_model" in key for key in keys)
        assert not [key for key in keys if "vision" in key or "visual" in key]
        assert (folder / "metrics.json").is_file()
        assert len(pd.read_parquet(folder / "completions.parquet")) == 6


@pytest.mark.slow
def test_mllama_is_decoded_with_transformers_and_a_line_says_why(backbones: Path) -> None:
    text = (backbones / "stdout.txt").read_text()
    assert "mllama is decoded with transformers, not vllm: " in text
    engines = {
        key: content(folder, "cell.json")["engine"] for key, folder in cells(backbones).items()
    }
    assert {engine for (name, _), engine in engines.items() if name == "mllama"} == {"transformers"}
    assert {engine for (name, _), engine in engines.items() if name != "mllama"} == {"vllm"}
    assert "not vllm" in content(cells(backbones)["mllama", "ce"], "cell.json")["engine_note"]
    used = content(backbones, "manifest.json")["generation"]["clock_time"]["engine"]
    assert {Path(model).name: engine["name"] for model, engine in used.items()} == {
        "qwen2_5_vl": "vllm",
        "mistral3": "vllm",
        "mllama": "transformers",
    }


def test_a_text_model_on_a_vision_task_is_refused_before_anything(
    smmd_bench: CommandLine, tmp_path: Path
) -> None:
    words = ["train-eval", "--task", "clock_time", "--losses", "ce", "--model", "builtin/tiny"]
    result = smmd_bench(*words, "--out", str(tmp_path / "run"))
    assert result.returncode == 2
    assert "clock_time" in result.stderr
    assert "builtin/tiny" in result.stderr
    assert not (tmp_path / "run").exists()


def test_a_broken_picture_ends_a_run_before_it_starts(
    smmd_bench: CommandLine, tmp_path: Path
) -> None:
    folder = tmp_path / "data" / "clock_time"
    lines = ["class index,filepaths,labels,data set"]
    for number, (hour, minute) in enumerate((h, m) for h in range(1, 13) for m in range(0, 60, 5)):
        for split in ("train", "valid", "test"):
            path = folder / split / f"{hour}-{minute:02}" / f"{number % 100}.jpg"
            path.parent.mkdir(parents=True)
            Image.new("RGB", (16, 16), (number, 0, 0)).save(path)
            lines.append(f"{number},{path.relative_to(folder)},{hour}_{minute:02},{split}")
    (folder / "clocks.csv").write_text("\n".join(lines) + "\n")
    bad = next((folder / "train" / "3-30").iterdir())
    bad.write_bytes(b"no picture")
    words = ["train-eval", "--task", "clock_time", "--losses", "ce"]
    result = smmd_bench(
        *words, "--data-dir", str(tmp_path / "data"), "--out", str(tmp_path / "run")
    )
    assert result.returncode == 2
    assert str(bad) in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "run").exists()
