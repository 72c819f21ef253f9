"""Which epoch is selected: by which metric, and what breaks its ties."""

import dataclasses
from types import SimpleNamespace

import pandas as pd
import pytest

from smmd_bench.decoding.selection import select
from smmd_bench.models.recipe import training_settings
from smmd_bench.plugin_system.registry import load_task
from smmd_bench.scoring.deciding import selecting_metrics
from tests.conftest import expect_user_error
from tests.run.finished_cells import PLAIN, completions, trained_cell

UNREADABLE = "no number"


def validation(*epochs):
    """The answers of each epoch to four sums, which are 1, 2, 3 and 4."""
    frames = [
        completions(4).assign(completion=answers, epoch=number)
        for number, answers in enumerate(epochs, start=1)
    ]
    return pd.concat(frames)


def selected(*epochs, **recipe):
    experiment = dataclasses.replace(PLAIN, recipe={**PLAIN.recipe, **recipe})
    (cell,) = [cell for cell in experiment.cells if not cell.is_base]
    return select(cell, validation(*epochs))


def test_the_first_metric_selects_whatever_the_error_is():
    choice = selected(["1", "2", "9", "900"], ["1", "3", "4", "5"])
    assert choice["metric"] == "exact_match"
    assert choice["ties"] == ["mean_absolute_error"]
    assert choice["best_epoch"] == 1


def test_ties_go_to_the_smaller_error_then_to_the_earlier_epoch():
    wild, close, closer = (
        ["900"] * 4,
        ["2", "3", "4", "5"],
        ["1.5", "2.5", "3.5", "4.5"],
    )
    assert selected(wild, close, closer)["best_epoch"] == 3
    assert selected(wild, closer, close)["best_epoch"] == 2
    assert selected(wild, close, close)["best_epoch"] == 2


def test_an_answer_that_cannot_be_read_is_no_way_to_a_small_error():
    silent = ["1.1", UNREADABLE, UNREADABLE, UNREADABLE]
    choice = selected(silent, ["1.3", "2.3", "3.3", "4.3"])
    errors = [line["mean_absolute_error"] for line in choice["epochs"]]

    assert errors == pytest.approx([0.1, 0.3])  # over what can be read
    assert choice["best_epoch"] == 2


def test_nothing_readable_counts_as_the_best_constant():
    nothing, worse, better = [UNREADABLE] * 4, ["900"] * 4, ["2.4"] * 4
    assert selected(worse, nothing)["best_epoch"] == 2
    # 2.5 and 2.4 have one error of 1.0
    assert selected(nothing, better)["best_epoch"] == 1
    assert selected(nothing, ["1.9", "2.1", "3.2", "4.2"])["best_epoch"] == 2


def test_the_recipe_names_the_metric_and_the_first_one_breaks_its_ties():
    exact, close = ["1", "2", "90", "90"], ["1.5", "2.5", "3.5", "4.5"]
    assert selected(exact, close)["best_epoch"] == 1

    choice = selected(exact, close, select_by="mean_absolute_error")
    assert choice["metric"] == "mean_absolute_error"
    assert choice["ties"] == ["exact_match"]
    assert choice["best_epoch"] == 2

    halves = ["1.5", "2.5", "3.5", "4.5"]
    one_right = ["1", "2", "4", "5"]
    assert (
        selected(halves, one_right, select_by="mean_absolute_error")["best_epoch"] == 2
    )


def test_a_metric_that_the_task_lacks_is_refused_by_name():
    with expect_user_error("arithmetic has no metric 'mae' to select epochs by"):
        selected(["1"] * 4, select_by="mae")


def test_the_setting_changes_the_selection_and_no_training():
    (plain,) = [trained_cell()]
    by_error = dataclasses.replace(
        plain, recipe=plain.recipe.changed({"select_by": "mean_absolute_error"})
    )
    assert by_error.address == plain.address
    assert training_settings(by_error.recipe) == training_settings(plain.recipe)

    changed = {
        name for name in plain.parts if plain.parts[name] != by_error.parts[name]
    }
    assert changed == {"select"}


def test_a_task_says_by_which_of_its_metrics():
    arithmetic = load_task("arithmetic")
    task = SimpleNamespace(
        name="sums", metrics=arithmetic.metrics, select_by="mean_absolute_error"
    )
    assert selecting_metrics(arithmetic)[0].name == "exact_match"
    assert [metric.name for metric in selecting_metrics(task)] == [
        "mean_absolute_error",
        "exact_match",
    ]

    by_recipe = selecting_metrics(task, "r_squared")
    assert [metric.name for metric in by_recipe] == ["r_squared", "exact_match"]


def test_a_note_says_that_every_epoch_is_at_the_floor():
    close, wild = ["1.5", "2.5", "3.5", "4.5"], ["90"] * 4
    assert selected(wild, close)["notes"] == [
        "Acc (%) is 0 on validation at every epoch: one was selected by MAE."
    ]
    assert selected(["1", *close[1:]], close)["notes"] == []

    by_error = selected(wild, wild, select_by="mean_absolute_error")
    assert by_error["notes"] == [
        "No epoch's MAE on validation is below 1, that of the best constant answer."
    ]
    assert selected(wild, close, select_by="mean_absolute_error")["notes"] == []
