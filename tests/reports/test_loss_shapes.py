"""What each loss charges, and which losses of a run are drawn."""

import math

import pytest
from smmd_bench.reports.loss_shapes import LossShapes, find_penalties

from smmd_bench.contracts import ReportSkippedError
from smmd_bench.publishing.style import figure_style
from tests.changed_runs import with_manifest
from tests.runs import quick_run

CHARGED = [
    ("ce", 3, -math.log(0.9)),
    ("ce", 9, -math.log(0.1 / 9)),
    ("ntl", 5, 2 * (0.9 * 2 + 0.1 / 9 * 25)),
    ("smmd", 8, 7.25),
    ("smmd", 9, 7.11),
]
"""Those of SMMD stand in docs/losses.md; tests/losses has all formulas by hand."""
TERMS = {
    "ce": "cross-entropy",
    "gce": "in place of CE",
    "del": "0.01 × auxiliary",
    "ntil": "2 × auxiliary, noise=0",
    "numeric_dft": "1 × auxiliary, part constant",
}


@pytest.mark.parametrize(("loss", "value", "expected"), CHARGED)
def test_a_loss_charges_its_weighted_auxiliary_or_what_is_in_place_of_ce(
    loss, value, expected
):
    penalties = find_penalties([loss]).set_index("value")["penalty"]
    assert penalties[value] == pytest.approx(expected, rel=1e-3)


def test_a_term_says_what_the_penalty_is():
    data = find_penalties(list(TERMS))
    assert dict(zip(data["loss"], data["term"], strict=True)) == TERMS


def test_a_loss_that_does_not_act_leaves_cross_entropy():
    data = find_penalties(["ntil"], 1000, 300)
    assert {*data["term"]} == {"cross-entropy, noise=0"}


def test_all_losses_of_the_run_are_drawn_after_cross_entropy(tmp_path):
    losses = ("smmd", "smmd[sigma=1]", "ntil", "gce", "ntl[tuned]")
    with figure_style():
        artefact = LossShapes().build(quick_run(tmp_path, losses=losses))

    assert [*artefact.data["loss"].unique()] == ["ce", *losses[:4]]
    assert "as no one setting is given: ntl[tuned]." in artefact.caption
    third = artefact.figure.axes[2]
    assert third.get_title() == "SMMD [sigma=1]\n(3 × auxiliary)"


def test_it_is_skipped_without_a_loss_or_with_labels_for_losses(runs, tmp_path):
    with pytest.raises(ReportSkippedError, match="beside cross-entropy"):
        LossShapes().build(quick_run(tmp_path / "alone", losses=("ce",)))
    with pytest.raises(ReportSkippedError, match="made elsewhere"):
        LossShapes().build(
            with_manifest(runs("default"), tmp_path / "scored", predictions=[])
        )
