"""What tables say of tuned losses, and what they are compared with."""

import pandas as pd
import pytest
from smmd_bench.reports._tuning import at_the_ends, tuning_note
from smmd_bench.reports.arithmetic_table import ArithmeticTable
from smmd_bench.reports.tuning_table import TuningTable
from smmd_bench.reports.verdict import Verdict

from smmd_bench.publishing.style import loss_label
from tests.changed_runs import changed
from tests.reports.golden import assert_golden
from tests.runs import quick_run
from tests.tuned_runs import GRIDS, tuned_run


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """Two seeds: CE chooses either rate, SMMD lambda=10 twice."""
    return tuned_run(tmp_path_factory.mktemp("tuned"), n=60)


def without_choices(run, folder):
    """A copy in which no trial is validated."""
    return changed(run, folder, "choice.json", lambda said: {**said, "address": "another"})


def test_the_table_of_a_tuning_is_as_it_was(tuned):
    assert TuningTable().skip(tuned) is None
    assert_golden("tuning_two_seeds", TuningTable().build(tuned))


def test_a_run_without_tuned_losses_has_no_such_table_and_no_such_note(tmp_path):
    run = quick_run(tmp_path)
    assert TuningTable().skip(run) == "the run has no tuned loss"
    assert tuning_note(run, run.cells) == ""
    assert "Tuned" not in Verdict().build(run).caption


def test_each_table_has_the_published_row_and_the_tuned_one_and_says_what_was_chosen(tuned):
    for artefact in (Verdict().build(tuned), ArithmeticTable().build(tuned)):
        assert {"SMMD", "SMMD (tuned)", "CE (tuned)"} <= {*artefact.table["Loss"]}
        assert "the best of 2 settings a loss by validation, for each seed" in artefact.caption
        assert "SMMD (tuned) lambda=10 (2 of 2 seeds)" in artefact.caption
        ce = "CE (tuned) learning_rate=0.001 (1 of 2 seeds), learning_rate=0.002 (1 of 2)"
        assert ce in artefact.caption


def test_a_tuned_loss_is_compared_with_tuned_ce_and_that_with_ce(tuned):
    against = tuned.comparisons.drop_duplicates("address").set_index("loss")["against_loss"]
    assert set(against["smmd[tuned]"]) == {"ce[tuned]"}
    assert set(against["ce[tuned]"]) == {"ce"}
    assert set(against["smmd"]) == {"ce"}
    data = Verdict().build(tuned).data
    rows = data[data["metric"] == "exact_match"].set_index("loss")
    assert {*rows.index} == {"ce", "ce[tuned]", "smmd", "smmd[tuned]"}  # ce: the noise floor
    value = tuned.metrics[tuned.metrics["metric"] == "exact_match"]
    mean = value.groupby("loss", observed=True)["value"].mean()
    tuned_gain = mean["smmd[tuned]"] - mean["ce[tuned]"]
    assert rows.loc["smmd[tuned]", "difference"] == pytest.approx(tuned_gain)


def test_unequal_budgets_are_named(tmp_path):
    grids = {**GRIDS, "smmd": (*GRIDS["smmd"], "lambda=3")}
    run = tuned_run(tmp_path, grids=grids)
    note = tuning_note(run, run.cells)
    assert "unequal numbers of settings (CE (tuned) 2, SMMD (tuned) 3)" in note
    against = run.comparisons.drop_duplicates("address").set_index("loss")["against_loss"]
    assert set(against["smmd[tuned]"]) == {"ce"}


def test_a_tuning_that_is_not_over_is_no_result(tuned, tmp_path):
    run = without_choices(tuned, tmp_path)
    status = run.cells.set_index("loss")["status"]
    assert set(status["smmd[tuned]"]) == {"pending"}
    assert set(status["smmd"]) == {"done"}
    assert "SMMD (tuned) not chosen yet" in tuning_note(run, run.cells)
    table = TuningTable().build(run).table
    assert set(table["Chosen"]) == {"–"}


def test_a_tuned_loss_has_the_training_log_of_the_chosen_trial(tuned):
    logs = tuned.train_log.groupby(["loss", "seed"], observed=True)["loss_value"].sum()
    (cell,) = tuned.cells[(tuned.cells["loss"] == "smmd[tuned]") & (tuned.cells["seed"] == 0)].index
    now = tuned.current(str(tuned.cells.loc[cell, "address"]))
    assert logs["smmd[tuned]", 0] == pd.read_parquet(now.place("train_log"))["loss"].sum()
    assert now.place("train_log").parent == now.chosen.folder
    assert now.place("scores").parent == now.folder


@pytest.mark.parametrize(
    ("loss", "label"),
    [
        ("smmd[tuned]", "SMMD (tuned)"),
        ("smmd[sigma=1,tuned]", "SMMD[sigma=1] (tuned)"),
        ("mine[tuned]", "mine (tuned)"),
        ("untuned", "untuned"),
    ],
)
def test_the_label_of_a_tuned_loss(loss, label):
    assert loss_label(loss) == label


def test_a_tuned_row_with_fewer_seeds_than_its_published_one_stays(tuned):
    late = tuned.cells["loss"].isin(["ce[tuned]", "smmd[tuned]"]) & (tuned.cells["seed"] == 1)
    data = Verdict().build(tuned.only(tuned.cells[~late])).data.set_index("loss")
    assert set(data.loc["smmd[tuned]", "seeds"]) == {1}
    assert set(data.loc["smmd", "seeds"]) == {2}


@pytest.mark.parametrize(
    ("texts", "chosen", "named"),
    [
        (["lambda=10", "lambda=0.3", "lambda=3"], (1, 1, 2), "SMMD (tuned) lambda=0.3"),
        (["lambda=10", "lambda=0.3", "lambda=3"], (0, 0, 0), "SMMD (tuned) lambda=10"),
        (["lambda=10", "lambda=0.3", "lambda=3"], (1, 2, 2), None),
        (["lambda=10", "lambda=0.3"], (1, 1, 1), None),
        (["sigma=1+2", "sigma=2+3", "sigma=3"], (0, 0, 0), None),
        (["lambda=1,sigma=3", "lambda=2,sigma=2", "lambda=3,sigma=4"], (1, 1, 0),
         "SMMD (tuned) sigma=2"),
    ],
)  # fmt: skip
def test_a_choice_at_an_end_of_what_was_tried_is_named(texts, chosen, named):
    data = pd.DataFrame([
        {"model": "m", "task": "t", "loss": "smmd[tuned]", "seed": seed, "text": text,
         "chosen": at == best}
        for seed, best in enumerate(chosen) for at, text in enumerate(texts)
    ])  # fmt: skip
    note = at_the_ends(data)
    assert note == (
        "" if named is None else
        f"At an end of the values tried, so that a better one may lie beyond: {named}."
    )  # fmt: skip
