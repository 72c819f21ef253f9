import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from smmd_bench.reports._significance import against_reference, holm

MISSING = float("nan")
T_TEST = stats.ttest_1samp([3.9, 4.0], 0).pvalue


def by_hand(p_values):
    """Holm's step-down procedure as its paper states it."""
    order = sorted(range(len(p_values)), key=lambda at: p_values[at])
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, at in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[at]))
        adjusted[at] = largest
    return adjusted


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_p_values_are_corrected_as_by_hand(p_values):
    assert holm(p_values) == pytest.approx(by_hand(p_values))


def test_missing_p_values_stay_missing_and_do_not_count():
    found = holm([0.01, MISSING, 0.04, None])
    assert found[[0, 2]] == pytest.approx(by_hand([0.01, 0.04]))
    assert np.isnan(found[[1, 3]]).all()
    assert holm([]).size == 0


def frame(rows):
    columns = ["task", "loss", "seed", "against_loss", "difference", "difference_p"]
    return pd.DataFrame(rows, columns=columns).assign(model="m")


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param(
            [("a", "ntl", 0, "ce", 2.0, 0.03), ("a", "smmd", 0, "ce", 2.0, 0.04),
             ("b", "smmd", 0, "ce", 2.0, 0.04)],
            {("a", "ntl"): (2, 0.03, 0.06, False), ("a", "smmd"): (2, 0.04, 0.06, False),
             ("b", "smmd"): (2, 0.04, 0.04, True)},
            id="each task is a family of its own",
        ),
        pytest.param(
            [("a", "ntl", 0, "ce", 2.0, 0.001), ("a", "ntl", 1, "ce", -2.0, 0.001),
             ("a", "smmd", 0, "ce", 3.9, 0.001), ("a", "smmd", 1, "ce", 4.0, 0.02)],
            {("a", "ntl"): (0, 1, 1, False), ("a", "smmd"): (3.95, T_TEST, 2 * T_TEST, True)},
            id="over seeds the paired t-test counts",
        ),
        pytest.param(
            [("a", "ntl", 0, "ce", 3.0, 0.001), ("a", "smmd", 0, "ce", 5.0, 0.001),
             ("a", "gce", 0, "ce", 5.0, 0.001)],
            {("a", "ntl"): (3, 0.001, 0.003, False), ("a", "smmd"): (5, 0.001, 0.003, True),
             ("a", "gce"): (5, 0.001, 0.003, True)},
            id="two that are equally good are both best",
        ),
        pytest.param(
            [("b", "ntl", 0, "ce", 3.0, 0.001), ("b", "smmd", 0, "ce", 5.0, 0.9)],
            {("b", "ntl"): (3, 0.001, 0.002, False), ("b", "smmd"): (5, 0.9, 0.9, False)},
            id="what is best but not significantly better is not marked",
        ),
        pytest.param(
            [("a", "ce", 0, "base", 9.0, 0.001), ("a", "ntl", 0, "ce", -9.0, 0.001)],
            {("a", "ce"): (MISSING, MISSING, MISSING, False),
             ("a", "ntl"): (-9, 0.001, 0.001, False)},
            id="a worse loss is never best, and the untuned model is no reference",
        ),
    ],
)  # fmt: skip
def test_losses_against_the_reference(rows, expected):
    columns = ["task", "loss", "seed", "against_loss", "difference", "difference_p"]
    found = against_reference(pd.DataFrame(rows, columns=columns).assign(model="m"))
    found = found.drop_duplicates(["task", "loss"]).set_index(["task", "loss"])
    for key, (difference, p, p_holm, best) in expected.items():
        row = found.loc[key]
        assert row[["difference", "p", "p_holm"]].tolist() == pytest.approx(
            [difference, p, p_holm], nan_ok=True
        )
        assert row["best"] == best
