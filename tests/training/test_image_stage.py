"""The train stage of a cell whose model reads pictures."""

import json

import pytest
import torch
from transformers import AutoModelForImageTextToText

from smmd_bench.encoding.pictures import expand
from smmd_bench.encoding.prompts import encode_image_prompts, picture_tokens
from smmd_bench.experiment.experiment import Experiment
from smmd_bench.models.processor import load_processor
from smmd_bench.training.stage import train_cell

from .trained import moved

pytestmark = pytest.mark.engine
SETTINGS = {"train_examples": 32, "validation_examples": 4, "test_examples": 4, "epochs": 1}


def cell_of(folder, task="clock_time", **recipe):
    settings = {**SETTINGS, "max_length": 400, **recipe}
    return Experiment((task,), ("smmd",), (str(folder),), base=False, recipe=settings).cells[0]


def trained(cell, folder):
    """The training, as it is stored."""
    train_cell(cell, folder, lambda *_: None)
    return cell.stored(folder)


def test_an_epoch_is_a_checkpoint_that_stands_by_itself(tiny_vlm, tmp_path):
    base = tiny_vlm("qwen2_5_vl")
    cell = cell_of(base, method="full", max_pixels=56 * 56)
    now = trained(cell, tmp_path)
    canaries = json.loads((now.trained / "canaries.json").read_text())
    assert canaries["epochs"]["1"]["pictures"] == 8
    model = AutoModelForImageTextToText.from_pretrained(now.epoch(1)).eval()
    processor = load_processor(now.epoch(1))
    assert picture_tokens(processor, (224, 224)) == 4  # the recipe's limit went with it
    parts = {name.split(".")[1] for name in moved(model, base) if name.startswith("model.")}
    assert parts == {"visual", "language_model"}
    example = cell.task_plugin.examples("test", 0, 1)[0]
    (ids,) = encode_image_prompts(processor, [example.prompt], [1])
    with torch.no_grad():
        assert bool(model(**expand(processor, ids, example.images)).logits.isfinite().all())
