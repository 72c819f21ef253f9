"""Prompts that do not fit are found before anything is trained, and never cut."""

import dataclasses
import re
import shutil
from fractions import Fraction
from pathlib import Path

import pytest
from smmd_bench.tasks.gsm8k import GSM8K
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from smmd_bench.contracts import Answer, Example
from smmd_bench.errors import UserError
from smmd_bench.experiment.experiment import Experiment
from smmd_bench.models.cards import model_card
from smmd_bench.models.checkpoints import stop_token_ids
from smmd_bench.models.tokenizers import load_tokenizer
from smmd_bench.run.preflight import preflight
from smmd_bench.storage.files import read_json, write_json
from tests.conftest import expect_user_error, silent

pytestmark = pytest.mark.usefixtures("local_copies")
FEW = {"train_examples": 4, "validation_examples": 2, "test_examples": 2}


@pytest.fixture
def short(tmp_path):
    """`builtin/tiny` with 256 positions."""
    folder = shutil.copytree(model_card("builtin/tiny").folder, tmp_path / "short")
    config = read_json(folder / "config.json")
    config["max_position_embeddings"] = 256
    write_json(folder / "config.json", config)
    (folder / "card.yaml").unlink()
    return str(folder)


def refusal(experiment):
    with expect_user_error(".") as error:
        preflight(experiment.cells, silent)
    return str(error.value)


def test_decoders_need_completions_that_are_one_number():
    plain = words("builtin/tiny")
    experiment = dataclasses.replace(plain, decoders=("mean",))
    message = refusal(experiment)
    assert message.startswith("gsm8k has targets that are not one number: --decoders")
    with expect_user_error("not one number"):
        preflight([*plain.cells, *experiment.cells], silent)


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ("chartqa[source=synthetic]", "--decoders mean would change nothing."),
        ("arithmetic[level=easy]", None),
    ],
)
def test_decoders_need_a_metric_that_they_can_change(task, message):
    models = ("builtin/tiny",) if message is None else ()
    experiment = dataclasses.replace(
        words("builtin/tiny"), decoders=("mean",), tasks=(task,)
    )
    experiment = dataclasses.replace(experiment, models=models)
    if message is None:
        preflight(experiment.cells, silent)
    else:
        assert refusal(experiment).endswith(message)


def words(model, **recipe):
    return Experiment(
        ("gsm8k[source=corpus]",),
        ("ce",),
        (model,),
        recipe={**FEW, **recipe},
        base=False,
    )


def heard(experiment):
    """What a preflight says."""
    labels = []
    preflight(experiment.cells, lambda what, *_: labels.append(what))
    return labels


def test_a_model_with_too_few_positions(short):
    message = refusal(words(short, max_length=4096))
    needed = re.search(
        r"needs the most room, (\d+) tokens \(a prompt of \d+ and 512 after it", message
    )
    assert needed is not None
    assert f"{short} has room for 256, and nothing is ever cut" in message
    assert message.endswith(f"take a model with {needed[1]} positions or more.")


def enough(asked, length):
    """The length that the remedies lead to; one less is not enough."""
    for _ in range(9):
        try:
            heard(asked(length))
            break
        except UserError as error:
            (length,) = map(int, re.findall(r"--set max_length=(\d+)", str(error)))

    assert f"--set max_length={length}" in refusal(asked(length - 1))

    return length


def test_weights_that_are_not_there_are_found_before_anything_starts(short):
    (Path(short) / "model.safetensors").unlink()
    assert "has no *.safetensors" in refusal(words(short))


def test_a_tokenizer_without_numbers_is_found_before_anything_starts(short):
    tokenizer = Tokenizer(
        models.WordLevel({"<eos>": 0, "word": 1, "<unk>": 2}, unk_token="<unk>")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<eos>"
    ).save_pretrained(short)
    assert "short" in refusal(words(short))


def set_stops(folder, file, token_ids):
    """Let a file of a checkpoint name these end-of-sequence tokens."""
    path = Path(folder) / file
    write_json(path, {**read_json(path), "eos_token_id": token_ids})


@pytest.fixture
def newline(short):
    """The token of the line break, which the targets of GSM8K hold."""
    (token,) = load_tokenizer(Path(short)).encode("\n", add_special_tokens=False)
    return token


@pytest.mark.parametrize("as_list", [True, False])
def test_a_target_in_which_decoding_would_stop_is_refused(short, newline, as_list):
    end = load_tokenizer(Path(short)).eos_token_id
    set_stops(short, "generation_config.json", [end, newline] if as_list else newline)
    message = refusal(words(short))
    assert re.match(r"gsm8k, train: the target of example \S+ holds", message)
    assert f"'\\n' (token {newline}), at which {short} stops" in message
    assert message.endswith(
        "take it out of eos_token_id in generation_config.json, or write targets without it."
    )


def test_a_target_of_the_test_split_alone_is_refused(short, newline, monkeypatch):
    set_stops(short, "generation_config.json", [newline])
    monkeypatch.setattr(GSM8K, "max_new_tokens", 40)
    number = Answer(Fraction(1))
    targets = {"train": " #### 1", "validation": " #### 1", "test": " one\n#### 1"}
    monkeypatch.setattr(
        GSM8K,
        "examples",
        lambda _, split, *__: [Example("e", "?", targets[split], number)],
    )
    assert refusal(words(short)).startswith("gsm8k, test: the target of example e")


def test_without_a_generation_config_decoding_stops_as_config_json_says(short, newline):
    (Path(short) / "generation_config.json").unlink()
    end = load_tokenizer(Path(short)).eos_token_id
    assert stop_token_ids(Path(short), load_tokenizer(Path(short))) == [end]
    set_stops(short, "config.json", newline)
    assert f"(token {newline}), at which" in refusal(words(short))


@pytest.mark.parametrize("token", [100_000, -1, "990", [990], 1.5, True])
@pytest.mark.parametrize("others", [[], [990]])
def test_a_stop_token_that_the_model_does_not_have_is_refused(short, token, others):
    set_stops(short, "generation_config.json", [*others, token])
    message = refusal(words(short))
    assert (
        f"generation_config.json names the end-of-sequence token {token!r}" in message
    )


def test_an_empty_split_and_an_empty_prompt_are_refused(monkeypatch):
    experiment = words("builtin/tiny")
    monkeypatch.setattr(GSM8K, "examples", lambda *_: [])
    assert "gsm8k has no example of the train split" in refusal(experiment)
    empty = Example("nothing", "", " #### 1", Answer(Fraction(1)))
    monkeypatch.setattr(GSM8K, "examples", lambda *_: [empty])
    assert "the prompt of example nothing has no token" in refusal(experiment)


def pictures(model, **recipe):
    return Experiment(
        ("clock_time[source=synthetic]",),
        ("ce",),
        (str(model),),
        recipe={**FEW, **recipe},
    )


def test_pictures_count_with_the_tokens_that_a_model_reads(tiny_vlm):
    folder = tiny_vlm("qwen2_5_vl")
    message = refusal(pictures(folder, max_length=70))
    assert message.endswith("or give fewer pixels of an image with --set max_pixels=N.")
    length = enough(lambda length: pictures(folder, max_length=length), 70)
    heard(
        pictures(folder, max_length=length - 1, min_pixels=28 * 28, max_pixels=56 * 56)
    )


@pytest.fixture
def drawn(tiny_vlm, monkeypatch, tmp_path):
    """An experiment with pictures that are drawn for it."""
    monkeypatch.setenv("SMMD_BENCH_CACHE", str(tmp_path))
    return pictures(tiny_vlm("mistral3"))


def test_a_broken_picture_is_named_before_anything_starts(drawn):
    labels = " ".join(heard(drawn))
    for split in ("train", "validation", "test"):
        assert f"images of clock_time[source=synthetic], {split}" in labels
    (example, *_) = drawn.cells[1].task_plugin.examples("train", 0, 4)
    (file,) = example.images
    file.write_bytes(file.read_bytes()[:200])
    assert f"{file} cannot be read" in refusal(drawn)


def test_targets_that_no_completion_can_equal_are_said(monkeypatch):
    monkeypatch.setattr(GSM8K, "max_new_tokens", 40)
    notes = heard(words("builtin/tiny"))
    (sentence,) = {s for s in notes if "cannot be answered right" in s and "test" in s}
    assert sentence.startswith(
        "gsm8k, test: 2 of 2 targets need more than 40 new tokens"
    )
