"""What counts as the paper's setting, and what the captions say of another."""

import pytest
from smmd_bench.reports._setting import (
    other_setting,
    other_training,
    papers_task,
    published_beside,
    setting_note,
)

import smmd_bench as sb
from smmd_bench.storage.files import read_json, write_json
from tests.runs import write_run

MODEL, CLOCKS = "Qwen/Qwen2.5-1.5B", "clock_time[source=synthetic]"
PAPERS = {"method": "lora", "epochs": 5, "learning_rate": 2e-4, "train_examples": None}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """GSM8K with a model of the paper, on as many examples as the paper, with its recipe."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    write_run(
        folder, models=(MODEL,), tasks=("gsm8k",), losses=("smmd",), seeds=(0,), n=1319, steps=3,
        resamples=2, recipe=PAPERS,
    )  # fmt: skip
    return sb.read_run(folder)


def a_cell(run, **changes):
    """The trained cell of a run, with some of its recipe or of itself changed."""
    (cell,) = run.cells[run.cells["loss"] == "smmd"].to_dict("records")
    recipe = {**cell["recipe"], **changes.pop("recipe", {})}
    return {**cell, "recipe": recipe, **changes}


def differences(run, cell):
    """What of a cell is not as in the paper, in one text; None: nothing."""
    return ", ".join(other_setting(run, cell)) or None


def small(tmp_path, **names):
    made = {"models": (MODEL,), "tasks": ("gsm8k",), "losses": ("smmd",), "seeds": (0,), "n": 15}
    write_run(tmp_path, steps=3, resamples=2, **{**made, "recipe": {}, **names})
    return sb.read_run(tmp_path)


def test_the_papers_setting_is_no_other(whole):
    assert differences(whole, a_cell(whole)) is None
    assert published_beside(whole, a_cell(whole), "math_reasoning") == {"exact_match": 57.77}
    assert setting_note(whole, whole.cells) == ""


@pytest.mark.parametrize(
    ("recipe", "why"),
    [
        ({"train_examples": 256}, "256 of 6,973 training examples"),
        ({"train_examples": 9000}, "9,000 instead of 6,973 training examples"),
        ({"epochs": 2}, "epochs 2 instead of 5"),
        ({"learning_rate": 5e-4}, "learning rate 0.0005 instead of 0.0002"),
        ({"lora_rank": 8}, "lora rank 8 instead of 16"),
        ({"method": "full"}, "full fine-tuning instead of LoRA"),
    ],
)
def test_another_recipe_is_andifferences(recipe, why, whole):
    cell = a_cell(whole, recipe=recipe)
    assert differences(whole, cell) == why
    assert published_beside(whole, cell, "math_reasoning") == {}


def with_data(run, tmp_path, **data):
    """The same run, whose manifest says that of the data of GSM8K."""
    write_json(tmp_path / "manifest.json", {**run.manifest, "data": {"gsm8k": data}})
    (tmp_path / "cells").symlink_to(run.path / "cells")
    return sb.read_run(tmp_path)


@pytest.mark.parametrize(
    ("there", "asked", "why"),
    [
        (64, None, "64 of 6,973 training examples"),
        (64, 256, "64 of 6,973 training examples"),
        (6973, 256, "256 of 6,973 training examples"),
        (6973, 9000, None),
        (6973, None, None),
        (9000, None, None),  # no more than the paper's are used of them
    ],
)
def test_no_more_training_examples_count_than_are_there(there, asked, why, whole, tmp_path):
    run = with_data(whole, tmp_path, there={"train": there, "validation": 3}, sizes={"train": 1})
    cell = a_cell(run, recipe={"train_examples": asked})
    assert differences(run, cell) == why
    assert bool(published_beside(run, cell, "math_reasoning")) == (why is None)
    transfer = {**cell, "task": "svamp", "trained_on": "gsm8k"}
    said = [] if why is None else [why]
    assert [*other_training(run, transfer)] == said


def test_a_manifest_of_an_earlier_version_says_what_was_used(whole, tmp_path):
    run = with_data(whole, tmp_path, sizes={"train": 64, "test": 1319})
    assert differences(run, a_cell(run)) == "64 of 6,973 training examples"


def test_data_made_without_end_is_as_large_as_the_recipe_asks(tmp_path):
    run = small(tmp_path, tasks=("arithmetic",), n=10_000, base=False, recipe={"epochs": 15})
    data = {"arithmetic": {"there": {}, "sizes": {"train": 5}}}
    write_json(tmp_path / "manifest.json", {**run.manifest, "data": data})
    run = sb.read_run(tmp_path)
    assert differences(run, a_cell(run)) is None
    cell = a_cell(run, recipe={"train_examples": 5})
    assert differences(run, cell).startswith("5 of ")


@pytest.mark.parametrize("recipe", [{"batch_size": 64}, {"dtype": "bfloat16"}, {"schedule": "x"}])
def test_what_the_paper_does_not_say_is_free(recipe, whole):
    assert differences(whole, a_cell(whole, recipe=recipe)) is None


def test_the_recipe_of_the_untuned_model_and_of_completions_made_elsewhere_is_unknown(whole):
    assert differences(whole, a_cell(whole, loss="base", recipe={"epochs": 1})) is None
    assert differences(whole, {**a_cell(whole), "recipe": {}}) is None


def test_of_completions_made_elsewhere_the_test_examples_count(tmp_path):
    run = small(tmp_path)
    manifest = {**read_json(tmp_path / "manifest.json"), "predictions": {"task": "gsm8k"}}
    write_json(tmp_path / "manifest.json", manifest)
    run = sb.read_run(tmp_path)
    said = "15 of 1,319 test examples (a path check on a small subset)"
    assert differences(run, a_cell(run)) == said


def test_a_test_of_transfer_has_the_recipe_of_the_task_that_was_trained(whole):
    cell = a_cell(whole, task="svamp", trained_on="gsm8k", recipe={"train_examples": 256})
    assert differences(whole, cell).endswith(", 256 of 6,973 training examples")


@pytest.mark.parametrize(
    ("n", "said"),
    [
        (400, "400 of 1,000 test examples (a path check on a small subset)"),
        (700, "700 of 1,000 test examples"),
        (1200, "1,200 instead of 1,000 test examples"),
        (995, None),
    ],
)
def test_other_numbers_of_test_examples(n, said, tmp_path):
    run = small(tmp_path, tasks=("svamp",), n=n, base=False)
    assert differences(run, a_cell(run)) == said


def test_much_of_what_is_drawn_without_end_is_no_path_check(tmp_path):
    run = small(tmp_path, tasks=("arithmetic",), n=2000, base=False)
    assert differences(run, a_cell(run)) == "2,000 of 10,000 test examples"


def test_synthetic_and_unknown_data(tmp_path):
    run = small(tmp_path, models=("Qwen/Qwen2.5-VL-3B",), tasks=(CLOCKS,), n=1440, base=False)
    assert differences(run, a_cell(run)) == "synthetic data"
    assert published_beside(run, a_cell(run), "clock") == {}
    write_json(tmp_path / "manifest.json", {**run.manifest, "data": {}})
    run = sb.read_run(tmp_path)
    assert differences(run, a_cell(run)) == "data of unknown source"


@pytest.mark.parametrize(
    ("task", "source", "papers"),
    [
        ("gsm8k", "–", "gsm8k"),
        ("gsm8k[calculator=keep]", "–", None),
        ("arithmetic[level=easy]", "–", None),
        ("clock_time[source=kaggle]", "kaggle", "clock_time"),
        ("clock_time[rotate=true]", "kaggle", None),
        ("clock_time", "–", None),
        ("samsum[source=synthetic]", "synthetic", None),
    ],
)
def test_the_papers_name_of_a_task(task, source, papers):
    assert papers_task(task, source) == papers


def test_the_sentence_names_every_task_and_model_once(tmp_path):
    run = small(tmp_path, models=(MODEL, "builtin/tiny"), losses=("ce", "smmd"), seeds=(0, 1))
    some = "15 of 1,319 test examples (a path check on a small subset)"
    assert setting_note(run, run.cells) == (
        f"No published values for gsm8k with Qwen2.5-1.5B: {some}; gsm8k with builtin/tiny: "
        f"a model that is not in the paper, {some}."
    )
