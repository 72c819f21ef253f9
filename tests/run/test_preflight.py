"""Prompts that do not fit are found before anything is trained, and never cut."""

import dataclasses
import json
import re
import shutil
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from smmd_bench.tasks.gsm8k import GSM8K

from smmd_bench.contracts import Answer, ExactMatch, Example
from smmd_bench.encoding.data import TokenisedExamples
from smmd_bench.errors import UserError
from smmd_bench.experiment.experiment import Experiment
from smmd_bench.models.cards import model_card
from smmd_bench.models.loading import load_tokenizer
from smmd_bench.models.processor import load_processor
from smmd_bench.run.preflight import preflight, rehearse
from smmd_bench.run.room import largest_need
from smmd_bench.training.stage import train_cell

from ..conftest import DATA

FEW = {"train_examples": 4, "validation_examples": 2, "test_examples": 2}


class Doubling:
    """A task of five examples, with the attributes of the class."""

    attributes: ClassVar[dict[str, Any]] = {"digits": 1}
    name = "doubling"

    def examples(self, split: str, seed: int, limit: int) -> list[Example]:
        return [
            Example(
                f"{n}", f"Double {n}.", f"{2 * n}", Answer(Fraction(2 * n)), (), self.attributes
            )
            for n in range(limit)
        ]

    def parse(self, completion: str) -> Answer:
        return Answer(Fraction(completion))

    def metrics(self) -> list[Any]:
        return [ExactMatch()]


@pytest.fixture
def short(tmp_path):
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


def test_a_model_with_too_few_positions(monkeypatch, short):
    message = refusal(words(monkeypatch, short, max_length=4096))
    needed = re.search(
        r"needs the most room, (\d+) tokens \(a prompt of \d+ and up to 512", message
    )
    assert needed is not None
    assert f"the context of {short} has room for 256, and nothing is ever cut" in message
    assert message.endswith(f"take a model with {needed[1]} positions or more.")


def remedy(message: str) -> int:
    found = re.search(r"--set max_length=(\d+)", message)
    assert found is not None, message
    return int(found[1])


@pytest.mark.parametrize("task", ["gsm8k", "samsum", "arithmetic[level=easy]"])
def test_the_remedy_is_enough_for_every_split_and_one_less_is_not(task, monkeypatch):
    monkeypatch.setenv("SMMD_BENCH_DATA", str(DATA))

    def asked(length):
        recipe = {**FEW, "train_examples": 50, "max_length": length}
        return Experiment(tasks=(task, "gsm8k"), losses=("ce",), recipe=recipe)

    length = remedy(refusal(asked(20)))
    assert remedy(refusal(asked(length - 1))) == length
    preflight(asked(length).cells, lambda *_: None)
    for cell in asked(length).cells:
        if not cell.is_base and cell.source is None:
            examples = cell.task_plugin.examples("train", 0, 50)
            TokenisedExamples(examples, load_tokenizer(cell.card.folder), length)


@settings(max_examples=60)
@given(
    st.lists(st.text(max_size=30) | st.text("Ab 1.,\n", max_size=80), min_size=1, max_size=5),
    st.integers(8, 120),
    st.sampled_from(["digit", "triple", "builtin/tiny", "builtin/tiny-vl"]),
    st.booleans(),
)
def test_training_examples_are_counted_as_training_does(texts, most, name, chat):
    folder = model_card(name).folder if "/" in name else DATA / "tokenizers" / name
    tokenizer = load_tokenizer(folder)
    chat = chat and bool(tokenizer.chat_template)
    examples = [Example(str(at), text, text[::-1], None) for at, text in enumerate(texts)]
    lengths = TokenisedExamples(examples, tokenizer, 10**6, chat=chat).lengths
    (cell,) = Experiment(("arithmetic",), ("ce",), base=False).cells
    recipe = dataclasses.replace(cell.recipe, max_length=most, chat_template=chat)
    changed = dataclasses.replace(cell, recipe=recipe)
    need, _ = largest_need(changed, "train", examples, tokenizer, None)
    assert (need.tokens if need else 0) == (max(lengths) if max(lengths) > most else 0)


@pytest.mark.parametrize("name", ["digit", "builtin/tiny", "builtin/tiny-vl"])
@pytest.mark.parametrize("chat", [False, True])
def test_special_tokens_count_where_every_byte_is_a_token(name, chat):
    tokenizer = load_tokenizer(
        model_card(name).folder if "/" in name else DATA / "tokenizers" / name
    )
    chat = chat and bool(tokenizer.chat_template)
    examples = [Example("digits", "4711", "42", None)]
    (length,) = TokenisedExamples(examples, tokenizer, 10**6, chat=chat).lengths
    (cell,) = Experiment(("arithmetic",), ("ce",), base=False).cells
    found = []
    rooms = range(max(1, length - 8), length + 3)
    for most in rooms:
        recipe = dataclasses.replace(cell.recipe, max_length=most, chat_template=chat)
        changed = dataclasses.replace(cell, recipe=recipe)
        found.append(largest_need(changed, "train", examples, tokenizer, None)[0])
    expected = [length if most < length else 0 for most in rooms]
    assert [need.tokens if need else 0 for need in found] == expected


def test_pictures_of_training_examples_are_counted_as_training_does(tiny_vlm):
    experiment = pictures(tiny_vlm("qwen2_5_vl"), max_length=60)
    (cell,) = (cell for cell in experiment.cells if not cell.is_base)
    processor = load_processor(cell.card.folder, None, None)
    examples = cell.task_plugin.examples("train", 0, 4)
    need, _ = largest_need(cell, "train", examples, processor.tokenizer, processor)
    assert need is not None
    data = TokenisedExamples(examples, processor.tokenizer, 10**6, processor=processor)
    assert need.tokens == max(data.lengths)
    assert need.images


def test_the_longest_of_all_is_named_where_it_is_a_training_example(monkeypatch, short):
    message = refusal(words(monkeypatch, "builtin/tiny", max_length=150, train_examples=54))
    assert re.match(
        r"gsm8k, train: example gsm8k-train-\d+ needs the most room, \d+ tokens", message
    )
    assert re.search(r"\(a prompt of \d+ and a target of \d+\), but training \S+ has room", message)
    both = refusal(words(monkeypatch, short, max_length=150, train_examples=54))
    assert re.search(r"positions or more and add --set max_length=\d+\.$", both)


def task_with(**changes: Any) -> Any:
    """A task of the tests with another method or attribute."""
    return type("Changed", (Doubling,), changes)()


def rehearsal_of(task: Any) -> str:
    cell = SimpleNamespace(task="doubling", task_plugin=task)
    with pytest.raises(UserError) as error:
        rehearse(cell, "test", task.examples("test", 0, 5))
    return str(error.value)


def test_what_scoring_would_refuse_is_refused_before_training():
    def raises(*_):
        raise ZeroDivisionError("by zero")

    rehearse(SimpleNamespace(task_plugin=Doubling()), "test", Doubling().examples("test", 0, 5))
    taken = rehearsal_of(task_with(attributes={"prompt_tokens": 1}))
    assert "The attribute 'prompt_tokens' of the examples is the name of a column" in taken
    taken = rehearsal_of(task_with(attributes={"exact": 1}))
    assert "The attribute exact of task doubling has the name of a column" in taken
    assert "(ZeroDivisionError: by zero)" in rehearsal_of(task_with(parse=raises))
    lacking = task_with(
        metrics=lambda self: [SimpleNamespace(name="m", columns=("x",), subset=None)]
    )
    assert "The metric m, which selects the epoch of doubling, needs the column x" in rehearsal_of(
        lacking
    )


def test_weights_that_are_not_there_are_found_before_anything_starts(monkeypatch, short):
    (Path(short) / "model.safetensors").unlink()
    assert "has no *.safetensors" in refusal(words(monkeypatch, short))


def test_an_empty_split_and_an_empty_prompt_are_refused(monkeypatch):
    experiment = words(monkeypatch, "builtin/tiny")
    monkeypatch.setattr(GSM8K, "examples", lambda *_: [])
    assert "gsm8k has no example of the train split" in refusal(experiment)
    empty = Example("nothing", "", " #### 1", Answer(Fraction(1)))
    monkeypatch.setattr(GSM8K, "examples", lambda *_: [empty])
    assert "the prompt of example nothing has no token" in refusal(experiment)


def test_targets_that_no_completion_can_equal_are_said(monkeypatch):
    monkeypatch.setattr(GSM8K, "max_new_tokens", 40)
    said = []
    preflight(words(monkeypatch, "builtin/tiny").cells, lambda what, *_: said.append(what))
    (sentence,) = {s for s in said if "no completion can equal them" in s and "test" in s}
    assert sentence.startswith("gsm8k, test: 2 of 2 targets are longer than 40 tokens")


def test_examples_that_fit_need_no_more_positions(short):
    experiment = Experiment(
        tasks=("arithmetic[level=easy]",),
        losses=("ce",),
        models=(short,),
        recipe={**FEW, "max_length": 4096},
    )
    preflight(experiment.cells, lambda *_: None)


def test_a_training_example_longer_than_the_positions_is_refused_before_the_first_step(
    monkeypatch, short, tmp_path
):
    (cell, _) = words(monkeypatch, short, max_length=4096, train_examples=54).cells
    with pytest.raises(UserError, match=r"Training example gsm8k-train-\d+ has \d+ tokens, more "):
        train_cell(cell, tmp_path / "cell", lambda *_: None)
    assert not (tmp_path / "cell").exists()


def pictures(model: Path, **recipe: Any) -> Experiment:
    return Experiment(
        tasks=("clock_time",), losses=("ce",), models=(str(model),), recipe={**FEW, **recipe}
    )


def test_pictures_count_with_the_tokens_that_a_model_reads(tiny_vlm):
    folder = tiny_vlm("qwen2_5_vl")
    message = refusal(pictures(folder, max_length=70))
    assert re.search(r"a prompt of \d+ with its images and ", message)
    assert message.endswith("or fewer pixels of an image with --set max_pixels=N.")
    length = remedy(message)
    preflight(pictures(folder, max_length=length).cells, lambda *_: None)
    refusal(pictures(folder, max_length=length - 1))
    fewer = pictures(folder, max_length=length - 1, min_pixels=28 * 28, max_pixels=56 * 56)
    preflight(fewer.cells, lambda *_: None)


def test_pixels_too_few_for_a_token_are_refused(tiny_vlm):
    message = refusal(pictures(tiny_vlm("qwen2_5_vl"), max_pixels=5))
    assert message.startswith("max_pixels=5 is less than the 784 pixels (28 x 28) that one token ")


def test_a_question_that_holds_a_placeholder_is_named(tiny_vlm, monkeypatch, tmp_path):
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
    tiny_vlm, monkeypatch, tmp_path
):
    monkeypatch.setenv("SMMD_BENCH_CACHE", str(tmp_path))
    cells = pictures(tiny_vlm("mistral3")).cells
    said = []
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
