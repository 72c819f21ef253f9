"""What counts as the paper's setting, and what the captions say of another."""

import pytest
from smmd_bench.reports._setting import (
    other_setting,
    other_training,
    papers_task,
    published_beside,
    setting_note,
)

from tests.changed_runs import with_manifest
from tests.runs import quick_run

MODEL = "Qwen/Qwen2.5-1.5B"
PAPERS = {"method": "lora", "epochs": 5, "learning_rate": 2e-4, "train_examples": None}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """GSM8K with a model of the paper, on as many examples as the paper, with its recipe."""
    return small(tmp_path_factory.mktemp("whole"), n=1319, recipe=PAPERS)


def small(path, **names):
    paper = {"models": (MODEL,), "tasks": ("gsm8k",), "losses": ("smmd",), "recipe": {}}
    return quick_run(path, **{**paper, "resamples": 2, "base": False, **names})


def a_cell(run, recipe=(), **changes):
    """The trained cell of a run, with some of its recipe or of itself changed."""
    (cell,) = run.cells.to_dict("records")
    return {**cell, "recipe": {**cell["recipe"], **dict(recipe)}, **changes}


def differences(run, cell):
    """What of a cell is not as in the paper, in one text; None: nothing."""
    return ", ".join(other_setting(run, cell)) or None


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
        ({"batch_size": 64, "dtype": "bfloat16", "schedule": "x"}, None),  # the paper is silent
    ],
)
def test_another_recipe_is_another_setting(recipe, why, whole):
    cell = a_cell(whole, recipe)
    assert differences(whole, cell) == why
    assert bool(published_beside(whole, cell, "math_reasoning")) == (why is None)


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
    data = {"there": {"train": there, "validation": 3}, "sizes": {"train": 1}}
    run = with_manifest(whole, tmp_path, data={"gsm8k": data})
    cell = a_cell(run, {"train_examples": asked})
    assert differences(run, cell) == why
    transfer = {**cell, "task": "svamp", "trained_on": "gsm8k"}
    assert [*other_training(run, transfer)] == ([] if why is None else [why])


def test_a_manifest_of_an_earlier_version_says_what_was_used(whole, tmp_path):
    data = {"gsm8k": {"sizes": {"train": 64, "test": 1319}}}
    run = with_manifest(whole, tmp_path, data=data)
    assert differences(run, a_cell(run)) == "64 of 6,973 training examples"


def test_data_made_without_end_is_as_large_as_the_recipe_asks(tmp_path):
    run = small(tmp_path, tasks=("arithmetic",), n=10_000, recipe={"epochs": 15})
    run = with_manifest(run, tmp_path, data={"arithmetic": {"there": {}, "sizes": {"train": 5}}})
    assert differences(run, a_cell(run)) is None
    assert differences(run, a_cell(run, {"train_examples": 5})).startswith("5 of ")


def test_the_recipe_of_the_untuned_model_and_of_completions_made_elsewhere_is_unknown(whole):
    assert differences(whole, a_cell(whole, {"epochs": 1}, loss="base")) is None
    assert differences(whole, {**a_cell(whole), "recipe": {}}) is None


def test_a_test_of_transfer_has_the_recipe_of_the_task_that_was_trained(whole):
    cell = a_cell(whole, {"train_examples": 256}, task="svamp", trained_on="gsm8k")
    assert differences(whole, cell).endswith(", 256 of 6,973 training examples")


@pytest.mark.parametrize(
    ("task", "n", "said"),
    [
        ("svamp", 400, "400 of 1,000 test examples (a path check on a small subset)"),
        ("svamp", 700, "700 of 1,000 test examples"),
        ("svamp", 1200, "1,200 instead of 1,000 test examples"),
        ("svamp", 995, None),
        ("arithmetic", 2000, "2,000 of 10,000 test examples"),  # drawn without end: no path check
    ],
)
def test_other_numbers_of_test_examples(task, n, said, tmp_path):
    run = small(tmp_path, tasks=(task,), n=n)
    assert differences(run, a_cell(run)) == said
    elsewhere = with_manifest(run, tmp_path, predictions={"task": task})
    assert differences(elsewhere, a_cell(elsewhere)) == said


def test_synthetic_and_unknown_data(tmp_path):
    task = "clock_time[source=synthetic]"
    run = small(tmp_path, models=("Qwen/Qwen2.5-VL-3B",), tasks=(task,), n=1440)
    assert differences(run, a_cell(run)) == "synthetic data"
    assert published_beside(run, a_cell(run), "clock") == {}
    run = with_manifest(run, tmp_path, data={})
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
    models, losses = (MODEL, "builtin/tiny"), ("ce", "smmd")
    run = small(tmp_path, models=models, losses=losses, seeds=(0, 1), n=15)
    some = "15 of 1,319 test examples (a path check on a small subset)"
    assert setting_note(run, run.cells) == (
        f"No published values for gsm8k with Qwen2.5-1.5B: {some}; gsm8k with builtin/tiny: "
        f"a model that is not in the paper, {some}."
    )


def test_the_sizes_and_the_recipe_of_an_own_task_are_not_taken_for_the_papers(tmp_path):
    run = small(tmp_path, tasks=("temperature",), n=15)
    cell = a_cell(run, {"train_examples": 64, "epochs": 2})
    assert differences(run, cell) == "a task that is not in the paper"
    assert [*other_training(run, cell)] == ["a task that is not in the paper"]


def test_the_paper_is_not_named_for_an_own_task(tmp_path):
    run = small(tmp_path, models=("builtin/tiny",), tasks=("temperature",), n=15)
    assert setting_note(run, run.cells) == ""
