"""Prompts that do not fit are found before anything is trained, and never cut."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from smmd_bench.errors import UserError
from smmd_bench.experiment import Experiment
from smmd_bench.model_cards import model_card
from smmd_bench.preflight import preflight
from smmd_bench.training.stage import train_cell

from .conftest import DATA

FEW = {"train_examples": 4, "validation_examples": 2, "test_examples": 2}


@pytest.fixture
def short(tmp_path: Path) -> str:
    """`builtin/tiny` with 256 positions."""
    folder = shutil.copytree(model_card("builtin/tiny").folder, tmp_path / "short")
    config = json.loads((folder / "config.json").read_text())
    config["max_position_embeddings"] = 256
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "card.yaml").unlink()
    return str(folder)


def refusal(experiment: Experiment) -> str:
    with pytest.raises(UserError) as error:
        preflight(experiment.cells, lambda *_: None)
    assert "\n" not in str(error.value)
    return str(error.value)


def words(monkeypatch: pytest.MonkeyPatch, model: str, **recipe: Any) -> Experiment:
    monkeypatch.setenv("SMMD_BENCH_DATA", str(DATA))
    return Experiment(
        tasks=("gsm8k",), losses=("ce",), models=(model,), recipe={**FEW, **recipe}, base=False
    )


def test_a_model_with_too_few_positions(monkeypatch: pytest.MonkeyPatch, short: str) -> None:
    message = refusal(words(monkeypatch, short, max_length=4096))
    assert "gsm8k, validation: example gsm8k-train-" in message
    assert "up to 512 after it" in message
    assert f"the context of {short} is 256 here, and prompts are never cut" in message
    assert message.endswith("take a model with more positions.")


def test_a_max_length_that_is_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    message = refusal(words(monkeypatch, "builtin/tiny", max_length=20))
    _, _, length = message.removesuffix(".").rpartition("--set max_length=")
    preflight(words(monkeypatch, "builtin/tiny", max_length=512).cells, lambda *_: None)
    again = refusal(words(monkeypatch, "builtin/tiny", max_length=int(length) - 1))
    assert "raise max_length" in again


def test_examples_that_fit_need_no_more_positions(short: str) -> None:
    experiment = Experiment(
        tasks=("arithmetic[level=easy]",),
        losses=("ce",),
        models=(short,),
        recipe={**FEW, "max_length": 4096},
    )
    preflight(experiment.cells, lambda *_: None)


def test_a_training_example_longer_than_the_positions_is_refused_before_the_first_step(
    monkeypatch: pytest.MonkeyPatch, short: str, tmp_path: Path
) -> None:
    (cell, _) = words(monkeypatch, short, max_length=4096, train_examples=54).cells
    with pytest.raises(UserError, match=r"Training example gsm8k-train-\d+ has \d+ tokens, more "):
        train_cell(cell, tmp_path / "cell", lambda *_: None)
    assert not (tmp_path / "cell").exists()


def pictures(model: Path, **recipe: Any) -> Experiment:
    return Experiment(
        tasks=("clock_time",), losses=("ce",), models=(str(model),), recipe={**FEW, **recipe}
    )


def test_pictures_count_with_the_tokens_that_a_model_reads(
    tiny_vlm: Callable[[str], Path],
) -> None:
    folder = tiny_vlm("qwen2_5_vl")
    message = refusal(pictures(folder, max_length=70))
    assert re.search(r"a prompt of \d+ with its images and up to 16 after it", message)
    assert message.endswith("or fewer pixels of an image with --set max_pixels=N.")
    length = int(re.search(r"--set max_length=(\d+)", message)[1])  # type: ignore[index]
    preflight(pictures(folder, max_length=length).cells, lambda *_: None)
    refusal(pictures(folder, max_length=length - 1))
    fewer = pictures(folder, max_length=length - 1, min_pixels=28 * 28, max_pixels=56 * 56)
    preflight(fewer.cells, lambda *_: None)


def test_pixels_too_few_for_a_token_are_refused(tiny_vlm: Callable[[str], Path]) -> None:
    message = refusal(pictures(tiny_vlm("qwen2_5_vl"), max_pixels=5))
    assert message.startswith("max_pixels=5 is less than the 784 pixels (28 x 28) that one token ")


def test_a_question_that_holds_a_placeholder_is_named(
    tiny_vlm: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = shutil.copytree(DATA, tmp_path / "data")
    monkeypatch.setenv("SMMD_BENCH_DATA", str(folder))
    for file in (folder / "chartqa" / "ChartQA Dataset" / "val").glob("val_*.json"):
        rows = json.loads(file.read_text())
        for row in rows:
            row["query"] += " <|image_pad|>"
        file.write_text(json.dumps(rows))
    experiment = Experiment(
        ("chartqa",), ("ce",), (str(tiny_vlm("qwen2_5_vl")),), recipe={**FEW, "max_length": 800}
    )
    message = refusal(experiment)
    assert re.match(r"Example chartqa-official-validation-\S+ has 2 placeholders", message)


def test_broken_pictures_are_named_and_counted_before_anything_starts(
    tiny_vlm: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SMMD_BENCH_CACHE", str(tmp_path))
    cells = pictures(tiny_vlm("mistral3")).cells
    said: list[str] = []
    preflight(cells, lambda what, *_: said.append(what))
    assert {f"images of clock_time, {split}" for split in ("train", "validation", "test")} <= {
        *said
    }
    examples = cells[1].task_plugin.examples("train", 0, 4)
    files = [example.images[0] for example in examples]
    for file in files[:2]:
        file.write_bytes(file.read_bytes()[:200])
    with pytest.raises(UserError, match=r"2 of 4 images cannot be used") as error:
        preflight(cells, lambda *_: None)
    assert files[0].name in str(error.value)
