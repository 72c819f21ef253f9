"""The scripts that make the built-in checkpoints: what they train is what is fine-tuned later."""

import importlib
import re
import sys
from argparse import Namespace
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


def test_an_interrupted_pretraining_ends_with_the_same_weights(script, tmp_path):
    pretraining, text = script("_pretraining"), script("pretrain_tiny")
    problems = script("_tiny_text").SOURCES["facts"]

    class Killed(BaseException):
        pass

    def weights(folder, kills):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Embedding(16, 8), torch.nn.Linear(8, 16))
        recipe = text.Recipe(anneal_steps=6, warmup_steps=1, batch=4)
        seen = 0

        def losses_of(batch):
            nonlocal seen
            seen += 1
            if kills and seen == 4:
                raise Killed
            ids = torch.tensor([[ord(c) % 16 for c in p[0][:6]] for p in batch])
            yield torch.nn.functional.cross_entropy(model(ids[:, :-1]).mT, ids[:, 1:])

        def batches_from(recipe, step):
            while True:
                yield problems(f"{step}", "train", recipe.batch)
                step += 1

        arguments = Namespace(folder=folder, minutes=60, save_every=0)
        pretraining.train(
            arguments, recipe, model, [model[1].weight], batches_from, losses_of, lambda: {}
        )
        return model.state_dict()

    with pytest.raises(Killed):
        weights(tmp_path / "killed", kills=True)
    found = weights(tmp_path / "killed", kills=False)
    wanted = weights(tmp_path / "whole", kills=False)
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)
    assert len((tmp_path / "killed" / "log.jsonl").read_text().splitlines()) == 6


def test_the_stories_are_right_and_none_is_a_template_of_the_task(script):
    stories = script("_tiny_text")
    made = [stories.story_at("test", at) for at in range(2_000)]
    assert {story.template for story in made} == set(stories._content()["stories"])
    for story in made:
        notes = re.findall(r"<<([0-9+*/-]+)=(\d+)>>\2", story.answer)
        assert all(eval(formula) == int(result) for formula, result in notes)
        assert story.value == int(notes[-1][1])
        assert not set("[{(|)}]") & set(story.question + story.answer)
    assert made[:5] == [stories.story_at("test", at) for at in range(5)]
    task = importlib.import_module("smmd_bench.tasks._word_problems")._content()
    own = {text["story"] for text in stories._content()["stories"].values()}
    assert not own & {text["story"] for kind in ("gsm8k", "svamp") for text in task[kind].values()}
