"""The train stage of a cell whose model reads pictures."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from transformers import AutoModelForImageTextToText

from smmd_bench.encoding.data import TokenisedExamples
from smmd_bench.encoding.pictures import expand
from smmd_bench.encoding.prompts import encode_image_prompts, picture_tokens
from smmd_bench.errors import UserError
from smmd_bench.experiment.cell import Cell
from smmd_bench.experiment.experiment import Experiment
from smmd_bench.models.cards import model_card
from smmd_bench.models.processor import load_processor
from smmd_bench.training.stage import train_cell

SETTINGS = {
    "train_examples": 32,
    "validation_examples": 4,
    "test_examples": 4,
    "epochs": 1,
    "max_length": 400,
}


def cell_of(folder: Path, task: str = "clock_time", **recipe: Any) -> Cell:
    experiment = Experiment(
        tasks=(task,),
        losses=("smmd",),
        models=(str(folder),),
        base=False,
        recipe={**SETTINGS, **recipe},
    )
    return experiment.cells[0]


def receipt(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "train.json").read_text())


def test_an_epoch_is_a_checkpoint_that_stands_by_itself(
    tiny_vlm: Callable[[str], Path], tmp_path: Path
) -> None:
    cell = cell_of(tiny_vlm("qwen2_5_vl"), method="full", max_pixels=56 * 56)
    train_cell(cell, tmp_path, lambda *_: None)
    (epoch,) = receipt(tmp_path)["epochs"]
    assert epoch["canary"]["pictures"] == 8  # training prompts, behind texts without a picture
    saved = tmp_path / "epochs" / "1"
    model = AutoModelForImageTextToText.from_pretrained(saved).eval()
    processor = load_processor(saved)
    assert picture_tokens(processor, (224, 224)) == 4  # the recipe's limit went with it
    start = AutoModelForImageTextToText.from_pretrained(tiny_vlm("qwen2_5_vl")).state_dict()
    moved = {k for k, v in model.state_dict().items() if not torch.equal(v, start[k])}
    assert {k.split(".")[1] for k in moved if k.startswith("model.")} == {
        "visual",
        "language_model",
    }
    example = cell.task_plugin.examples("test", 0, 1)[0]
    (ids,) = encode_image_prompts(processor, [example.prompt], [1])
    with torch.no_grad():
        logits = model(**expand(processor, ids, example.images)).logits
    assert bool(logits.isfinite().all())


@pytest.mark.parametrize("architecture", ["mistral3", "mllama"])
def test_an_adapter_has_the_processor_beside_it(
    tiny_vlm: Callable[[str], Path], tmp_path: Path, architecture: str
) -> None:
    train_cell(cell_of(tiny_vlm(architecture)), tmp_path, lambda *_: None)
    saved = tmp_path / "epochs" / "1"
    config = json.loads((saved / "adapter_config.json").read_text())
    assert config["target_modules"].startswith(".*language_model.*")
    load_processor(saved)
    assert receipt(tmp_path)["numeric_targets"]["outside"] == 0


def test_a_text_task_needs_no_processor(tiny_vlm: Callable[[str], Path], tmp_path: Path) -> None:
    cell = cell_of(tiny_vlm("qwen2_5_vl"), "arithmetic")
    train_cell(cell, tmp_path, lambda *_: None)
    (epoch,) = receipt(tmp_path)["epochs"]
    assert epoch["canary"]["pictures"] == 0
    assert not (tmp_path / "epochs" / "1" / "processor_config.json").exists()


def test_a_text_model_is_refused_before_training(
    tiny_vlm: Callable[[str], Path], tmp_path: Path
) -> None:
    cell = dataclasses.replace(cell_of(tiny_vlm("mistral3")), model="builtin/tiny")
    assert cell.card == model_card("builtin/tiny")
    with pytest.raises(UserError, match=r"builtin/tiny reads no images, but the task clock_time"):
        train_cell(cell, tmp_path, lambda *_: None)
    assert not list(tmp_path.iterdir())


def test_pictures_are_read_when_a_batch_is_made(
    tiny_vlm: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = cell_of(tiny_vlm("mistral3"))
    examples = cell.task_plugin.examples("train", 0, 8)
    processor = load_processor(tiny_vlm("mistral3"))
    data = TokenisedExamples(examples, processor.tokenizer, 400, processor=processor)
    read: list[Path] = []
    monkeypatch.setattr(
        "smmd_bench.encoding.pictures.read_image",
        lambda path: read.append(path) or Image.open(path),
    )
    assert len(data) == 8
    assert not read
    data[3]
    assert read == list(examples[3].images)
