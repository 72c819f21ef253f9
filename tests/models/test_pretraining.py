"""The scripts that make the built-in checkpoints: what they train is what is fine-tuned later."""

import importlib
import sys
from pathlib import Path

import pytest
import torch
from PIL import Image

from smmd_bench.models.processor import load_processor

SCRIPTS = Path(__file__).parents[2] / "scripts"
pytestmark = pytest.mark.engine


@pytest.fixture
def script(monkeypatch):
    """Imports a script by name, and its own helpers; nothing is compiled."""
    monkeypatch.syspath_prepend(SCRIPTS)
    before = set(sys.modules)
    monkeypatch.setattr(torch, "compile", lambda **_: lambda function: function)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if "scripts" in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.mark.parametrize("source", ["charts", "plain", "values", "clocks"])
def test_packed_questions_are_read_as_each_alone_through_the_processor(script, tmp_path, source):
    script("build_tiny_vl").main(tmp_path)
    processor = load_processor(tmp_path)
    pictures, pretraining = script("_tiny_pictures"), script("pretrain_tiny_vl")
    recipe = pretraining.Recipe(vision=64, vision_layers=2, text=64, text_layers=2, intermediate=64)
    reader = pretraining.Reader(recipe, processor)
    lessons = [pictures.picture_at(source, "test", index) for index in (0, 1)]
    draw, pairs = pictures._MAKERS[source]("test", 1)
    with torch.no_grad():
        logits, labels, row, question, _ = reader(source, lessons)
        for number, (prompt, target) in enumerate(pairs):
            text = f"<|vision_start|><|image_pad|><|vision_end|>{prompt}{target}"
            alone = processor(text=[text], images=[draw()[0]], return_tensors="pt")
            told = len(processor.tokenizer(target)["input_ids"]) + 1
            asked = (row == 1) & (question == number)
            torch.testing.assert_close(
                logits[asked], reader.model(**alone).logits[0, -told:], rtol=1e-3, atol=1e-4
            )
            assert processor.tokenizer.decode(labels[asked]) == target + "<|im_end|>"


def test_pictures_come_back_and_belong_to_the_train_split(script):
    pictures = script("_tiny_pictures")
    charts = importlib.import_module("smmd_bench.tasks._charts_data")
    for index in range(3):
        first, again = (pictures.picture_at("charts", "0 1", index) for _ in range(2))
        assert (first.picture == again.picture).all()
        assert first.pairs == again.pairs
        draw, pairs = pictures._MAKERS["charts"]("0 1", index)
        assert charts.split_of(draw.args[0]) == "train"
        assert Image.fromarray(first.picture).size == pictures.SIZES["charts"]
        assert pairs == first.pairs
