"""The published values, and what counts as the paper's setting."""

import pytest
from smmd_bench.reports._paper import (
    describe_manifest,
    describe_other_setting,
    find_paper_model,
    find_published,
    find_published_beside,
)

from tests.changed_runs import with_manifest
from tests.runs import quick_run

PAPERS = {"method": "lora", "epochs": 5, "learning_rate": 2e-4, "train_examples": None}


@pytest.mark.parametrize(
    ("model", "key"),
    [
        ("Qwen/Qwen2.5-0.5B", "qwen2.5-0.5b"), ("/checkpoints/qwen2.5-1.5b/", "qwen2.5-1.5b"),
        ("unsloth/Qwen2.5-0.5B-Instruct", "qwen2.5-0.5b"), ("builtin/tiny", None),
        ("Qwen/Qwen2.5-0.5B-Math", None), ("Qwen/Qwen2.5-3B", None),
    ],
)  # fmt: skip
def test_models_are_found_by_the_last_part_of_their_name(model, key):
    assert find_paper_model(model).get("key") == key


@pytest.mark.parametrize(
    ("task", "loss", "value"),
    [
        ("arithmetic", "smmd", 45.93), ("arithmetic[operations=1..2]", "smmd", None),
        ("arithmetic", "smmd[sigma=1]", None), ("arithmetic", "base", None),
    ],
)  # fmt: skip
def test_published_values_are_of_the_papers_level_and_parameters_alone(
    task, loss, value
):
    published = find_published("arithmetic", "Qwen/Qwen2.5-0.5B", task, loss)
    assert published.get("exact_match") == value


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """GSM8K with a model of the paper, on as many examples as the paper, with its recipe."""
    return small(tmp_path_factory.mktemp("whole"), n=1319, recipe=PAPERS)


def small(path, **names):
    paper = {"models": ("Qwen/Qwen2.5-1.5B",), "tasks": ("gsm8k",), "losses": ("smmd",)}
    return quick_run(
        path, **{**paper, "recipe": {}, "resamples": 2, "base": False, **names}
    )


def a_cell(run, recipe=(), **changes):
    """The trained cell of a run, with some of its recipe or of itself changed."""
    (cell,) = run.cells.to_dict("records")
    return {**cell, "recipe": {**cell["recipe"], **dict(recipe)}, **changes}


@pytest.mark.parametrize(
    ("recipe", "word"),
    [
        ({}, ""), ({"train_examples": 256}, "other training"), ({"epochs": 2}, "other training"),
        ({"train_examples": 9000}, "other training"), ({"lora_rank": 8}, "other training"),
        ({"learning_rate": 5e-4}, "other training"), ({"method": "full"}, "other training"),
        ({"batch_size": 64, "dtype": "bfloat16", "schedule": "x"}, ""),  # the paper is silent
    ],
)  # fmt: skip
def test_another_recipe_is_another_setting(recipe, word, whole):
    cell = a_cell(whole, recipe)
    assert describe_other_setting(whole, cell) == word
    assert bool(find_published_beside(whole, cell, "math_reasoning")) == (word == "")
    transfer = {**cell, "task": "svamp", "trained_on": "gsm8k"}
    assert describe_other_setting(whole, transfer) == "other size"


@pytest.mark.parametrize(
    ("there", "asked", "word"),
    [
        (64, None, "other training"), (64, 256, "other training"), (6973, 256, "other training"),
        (6973, 9000, ""), (6973, None, ""), (9000, None, ""),  # no more than the paper's are used
    ],
)  # fmt: skip
def test_no_more_training_examples_count_than_are_there(
    there, asked, word, whole, tmp_path
):
    data = {"there": {"train": there, "validation": 3}, "sizes": {"train": 1}}
    run = with_manifest(whole, tmp_path, data={"gsm8k": data})
    assert describe_other_setting(run, a_cell(run, {"train_examples": asked})) == word


def test_the_recipe_of_the_untuned_model_and_of_completions_made_elsewhere_is_unknown(
    whole,
):
    assert (
        describe_other_setting(whole, a_cell(whole, {"epochs": 1}, loss="base")) == ""
    )
    assert describe_other_setting(whole, {**a_cell(whole), "recipe": {}}) == ""


@pytest.mark.parametrize(
    ("task", "n", "word"),
    [
        ("svamp", 400, "other size"), ("svamp", 1200, "other size"), ("svamp", 995, ""),
        ("gsm8k[calculator=keep]", 1319, "other level"), ("temperature", 15, "other training"),
        ("clock_time[source=synthetic]", 1440, "synthetic data"),
    ],
)  # fmt: skip
def test_other_data_is_another_setting(task, n, word, tmp_path):
    run = small(tmp_path, tasks=(task,), n=n)
    assert describe_other_setting(run, a_cell(run)) == word
    if task.startswith("clock_time"):
        run = with_manifest(run, tmp_path, data={})
        assert describe_other_setting(run, a_cell(run)) == "unknown data"


HOW = {"greedy": True, "stop": "", "engine": {}, "dtype": {}, "chat_template": {}}


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            {"generation": {"gsm8k": {**HOW, "max_new_tokens": 512}},
             "data": {"gsm8k": {"identity": {"test": {"hub": "openai/gsm8k"}}}}},
            "decoding complete (greedy, at most 512 tokens); setting the paper's; data not "
            "synthetic",
        ),
        (
            {"generation": {"gsm8k": HOW},
             "data": {"gsm8k": {"identity": {"test": {"generator": 1}}}}},
            "(max_new_tokens not reported); setting the paper's; data synthetic",
        ),
        ({"predictions": {}}, "not reported; setting not reported; data not reported"),
    ],
)  # fmt: skip
def test_what_is_reported_is_a_line_of_the_manifest(said, words, whole, tmp_path):
    line = describe_manifest(with_manifest(whole, tmp_path, **said))
    assert line.startswith(
        "Reported: seed" + ("s not reported" if "predictions" in said else " 0;")
    )
    assert line.endswith(f"{words}.")
