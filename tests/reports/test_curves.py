"""The figures of trainings: their curves, and what a loss does by its dose."""

import numpy as np
import pandas as pd
import pytest
from smmd_bench.reports.dose_response import DoseResponse
from smmd_bench.reports.training_curves import TrainingCurves

from smmd_bench.contracts import ReportSkippedError
from smmd_bench.publishing.style import figure_style
from smmd_bench.results.frames import read_run
from smmd_bench.scoring.crossed import fit
from tests.changed_runs import without
from tests.runs import quick_run

WEIGHTS = {"smmd[lambda=0.3]": 0.3, "smmd[lambda=1]": 1.0, "smmd": 3.0}
SHUFFLED = {
    "smmd[kernel=shuffled,lambda=0.3]": 0.3,
    "smmd[kernel=shuffled,lambda=1]": 1.0,
    "smmd[kernel=shuffled]": 3.0,
}
LOSSES = ("ce", *WEIGHTS, *SHUFFLED, "ntl", "ntl[lambda=1]")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A sweep of two losses, each of whose doses is a third of its λ; NTL has two alone."""
    path = tmp_path_factory.mktemp("doses")
    frames = quick_run(path, losses=LOSSES, seeds=(0, 1, 2), n=60, steps=40)
    weights = {**WEIGHTS, **SHUFFLED}
    for address, loss in frames.cells[["address", "loss"]].itertuples(index=False):
        if loss in weights:
            file = frames.current(address).place("train_log")
            log = pd.read_parquet(file)
            log["relative_auxiliary"] = weights[loss] / 3
            log.to_parquet(file)
    return read_run(path)


@pytest.fixture(scope="module")
def artefact(run):
    with figure_style():
        return DoseResponse().build(run)


def test_a_family_of_lambdas_is_a_line_over_its_doses(artefact):
    data = artefact.data
    assert {*data["family"]} == {"smmd", "smmd[kernel=shuffled]"}
    doses = data.drop_duplicates("loss").set_index("loss")["dose"].to_dict()
    expected = {loss: weight / 3 for loss, weight in {**WEIGHTS, **SHUFFLED}.items()}
    assert doses == pytest.approx(expected)

    axis = artefact.figure.subfigs[0].axes[0]
    assert axis.get_xscale() == "log"
    lines = {line.get_label(): line for line in axis.lines}
    plain, shuffled = lines["SMMD"], lines["SMMD[kernel=shuffled]"]
    np.testing.assert_allclose(plain.get_xdata(), sorted(expected[x] for x in WEIGHTS))
    assert plain.get_linestyle() == "-"
    assert shuffled.get_linestyle() == "--"
    assert shuffled.get_markerfacecolor() == "none"


def test_wrong_signs_are_the_mixed_models_of_a_plain_count(artefact, run):
    scores = run.read("scores", ["uid", "answer", "parsed"])
    sign = np.sign(scores["answer"])
    answered = np.sign(scores["parsed"].fillna(0))
    scores["wrong"] = 100.0 * (sign * answered < 0)
    table = scores.pivot_table("wrong", ["loss", "seed"], "uid", observed=True)
    difference = table.loc["smmd"] - table.loc["ce"]
    differences = difference.to_numpy()

    rows = artefact.data.set_index(["loss", "metric"])
    row = rows.loc[("smmd", "wrong_signs")]
    assert row["seeds"] == 3
    assert row["difference"] == pytest.approx(differences.mean())
    # The interval is of t with the mixed model's error, or wider where few pairs differ.
    half = (row["high"] - row["low"]) / 2
    assert half > 1.9 * fit(differences).error


def test_the_other_differences_are_those_of_the_verdict(artefact, run):
    verdict = run.verdict.set_index(["loss", "metric"])
    rows = artefact.data.set_index(["loss", "metric"])
    assert {*rows.index.get_level_values("metric")} == {
        "exact_match", "mean_absolute_error", "wrong_signs",
    }  # fmt: skip
    numbers = ["difference", "low", "high"]
    for loss in WEIGHTS:
        row = rows.loc[(loss, "exact_match"), numbers]
        expected = verdict.loc[(loss, "exact_match"), numbers]
        assert [*row] == pytest.approx([*expected])


def test_without_a_sweep_there_is_no_dose_to_draw(runs):
    with pytest.raises(
        ReportSkippedError, match=r"^no loss was trained with 3 values of λ$"
    ):
        DoseResponse().build(runs("default"))


def test_curves_have_each_seed_thin_their_mean_thick_and_rings_at_the_chosen_epochs(
    run,
):
    with figure_style():
        artefact = TrainingCurves().build(run)
    validation, cross_entropy, auxiliary = artefact.figure.subfigs[0].axes

    # Of CE and of each drawn loss: three seeds, and their mean with a label.
    lines = cross_entropy.lines
    labelled = [line for line in lines if line.get_label()[0] != "_"]
    assert len(lines) == 4 * len(labelled)
    mean = labelled[0]
    assert mean.get_label() == "CE"
    assert mean.get_linewidth() > 2 * lines[0].get_linewidth()
    labels = [line.get_label() for line in auxiliary.lines]
    assert "CE" not in labels

    selection = run.selection
    of_reference = selection[selection["loss"] == "ce"]
    chosen = of_reference[of_reference["selected"]]
    rings = [line for line in validation.lines if line.get_fillstyle() == "none"]
    ring = rings[0]
    np.testing.assert_allclose(ring.get_xdata(), chosen["epoch"])
    np.testing.assert_allclose(ring.get_ydata(), chosen["exact_match"])


def test_curves_are_smoothed_and_the_auxiliary_is_weighted(run):
    with figure_style():
        data = TrainingCurves().build(run).data
    cells = run.cells[run.cells["loss"] == "smmd[lambda=1]"]
    address = cells["address"].iloc[0]
    log = run.read("train_log", addresses=[address]).sort_values("step")

    of_cell = data[data["address"] == address]
    assert [*of_cell["step"]] == [*log["step"]]
    weighted = log["cross_entropy"] * log["relative_auxiliary"]
    smooth = weighted.ewm(span=4).mean()
    np.testing.assert_allclose(of_cell["weighted"], smooth)


def test_a_training_that_is_not_decoded_has_curves_all_the_same(runs, tmp_path):
    run = without(runs("default"), tmp_path)
    with figure_style():
        artefact = TrainingCurves().build(run)
    assert not artefact.data.empty
