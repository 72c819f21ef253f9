"""What each loss charges, against its formula by hand."""

import math

import pytest
from smmd_bench.reports.loss_shapes import LossShapes, find_penalties

from smmd_bench.publishing.style import figure_style
from tests.changed_runs import with_manifest
from tests.runs import quick_run

RIGHT, WRONG = -math.log(0.9), -math.log(0.1 / 9)
"""Cross-entropy at the target, and elsewhere."""


def penalties_of(loss, *vocabulary):
    return find_penalties([loss], *vocabulary).set_index("value")["penalty"]


def prediction(value):
    return [0.9 if i == value else 0.1 / 9 for i in range(10)]


def build(run):
    with figure_style():
        return LossShapes().build(run)


def test_cross_entropy_is_flat_but_at_the_target():
    penalties = penalties_of("ce")
    assert penalties[3] == pytest.approx(RIGHT)
    assert penalties.drop(3).to_numpy() == pytest.approx(WRONG)


def test_label_smoothing_is_charged():
    everywhere = (RIGHT + 9 * WRONG) / 10
    smoothed = penalties_of("ce[smoothing=0.2]")[3]
    assert smoothed == pytest.approx(0.8 * RIGHT + 0.2 * everywhere)


@pytest.mark.parametrize("value", [0, 5])
def test_ntl_is_lambda_times_the_expected_distance(value):
    distances = [p * abs(i - 3) for i, p in enumerate(prediction(value))]
    assert penalties_of("ntl")[value] == pytest.approx(2 * sum(distances))


@pytest.mark.parametrize("value", [0, 6, 9])
def test_smmd_is_lambda_times_its_quadratic_form(value):
    K = [[math.exp(-((i - j) ** 2) / 8) for j in range(10)] for i in range(10)]
    alpha = 1 / (2 * sum(map(sum, K)) / 10)
    r = [p - (i == 3) for i, p in enumerate(prediction(value))]
    pairs = [(i, j) for i in range(10) for j in range(10)]

    expected = sum(K[i][j] * r[i] * r[j] for i, j in pairs)
    expected += alpha * sum(K[i][j] * (r[i] - r[j]) ** 2 for i, j in pairs) / 2
    assert penalties_of("smmd")[value] == pytest.approx(3 * expected)


def test_what_replaces_cross_entropy_is_charged_alone():
    weights = [math.exp(-2 * (i - 3) ** 2) for i in range(10)]
    charged = [w * (RIGHT if i == 5 else WRONG) for i, w in enumerate(weights)]
    assert penalties_of("gce")[5] == pytest.approx(sum(charged) / sum(weights))


@pytest.mark.parametrize(
    ("loss", "term"),
    [
        ("ce", "cross-entropy"),
        ("gce", "in place of CE"),
        ("del", "0.01 × auxiliary"),
        ("ntil", "2 × auxiliary, noise=0"),
        ("numeric_dft", "1 × auxiliary, part constant"),
    ],
)
def test_a_term_says_what_the_penalty_is(loss, term):
    assert {*find_penalties([loss])["term"]} == {term}


def test_a_loss_that_does_not_act_leaves_cross_entropy():
    data = find_penalties(["ntil"], 1000, 300)
    assert {*data["term"]} == {"cross-entropy, noise=0"}
    assert data["penalty"].nunique() == 2


def test_all_losses_of_the_run_are_drawn_after_cross_entropy(tmp_path):
    losses = ("smmd", "smmd[sigma=1]", "ntil", "gce", "ntl[tuned]")
    artefact = build(quick_run(tmp_path, losses=losses))
    drawn = ["ce", "smmd", "smmd[sigma=1]", "ntil", "gce"]
    assert [*artefact.data["loss"].unique()] == drawn
    assert "as no one setting is given: ntl[tuned]." in artefact.caption

    titles = [axis.get_title() for axis in artefact.figure.axes if axis.axison]
    assert [title.partition("\n")[0] for title in titles] == [
        "CE",
        "SMMD",
        "SMMD [sigma=1]",
        "NTIL",
        "GCE",
    ]


def test_it_is_skipped_without_a_loss_or_with_labels_for_losses(runs, tmp_path):
    alone = quick_run(tmp_path / "alone", losses=("ce",))
    assert "beside cross-entropy" in LossShapes().skip(alone)
    scored = with_manifest(runs("default"), tmp_path / "scored", predictions=[])
    assert "made elsewhere" in LossShapes().skip(scored)
