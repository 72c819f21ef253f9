import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from smmd_bench.reports._significance import against_reference, holm

MISSING = float("nan")


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


def test_each_task_is_a_family_of_its_own():
    data = frame(
        [
            ("a", "ntl", 0, "ce", 2.0, 0.03), ("a", "smmd", 0, "ce", 2.0, 0.04),
            ("b", "smmd", 0, "ce", 2.0, 0.04),
        ]
    )  # fmt: skip
    found = against_reference(data).set_index(["task", "loss"])
    assert found["p_holm"].to_dict() == pytest.approx(
        {("a", "ntl"): 0.06, ("a", "smmd"): 0.06, ("b", "smmd"): 0.04}
    )
    assert found["best"].to_dict() == {
        ("a", "ntl"): False, ("a", "smmd"): False, ("b", "smmd"): True,
    }  # fmt: skip


def test_over_seeds_the_largest_p_counts_and_every_difference_must_be_above_zero():
    data = frame(
        [
            ("a", "ntl", 0, "ce", 2.0, 0.001), ("a", "ntl", 1, "ce", -2.0, 0.001),
            ("a", "smmd", 0, "ce", 2.0, 0.001), ("a", "smmd", 1, "ce", 4.0, 0.02),
        ]
    )  # fmt: skip
    found = against_reference(data).set_index("loss")
    assert found["p"].to_dict() == {"ntl": 0.001, "smmd": 0.02}
    assert found["best"].to_dict() == {"ntl": False, "smmd": True}
    assert found.loc["smmd", "difference"] == 3.0


def test_only_the_best_of_those_that_are_better_is_best():
    data = frame(
        [
            ("a", "ntl", 0, "ce", 3.0, 0.001), ("a", "smmd", 0, "ce", 5.0, 0.001),
            ("a", "gce", 0, "ce", 5.0, 0.001), ("b", "ntl", 0, "ce", 3.0, 0.001),
            ("b", "smmd", 0, "ce", 5.0, 0.9),
        ]
    )  # fmt: skip
    found = against_reference(data).set_index(["task", "loss"])["best"]
    # In a two are equally good; in b SMMD is best, but not significantly better than CE.
    assert set(found[found].index) == {("a", "gce"), ("a", "smmd")}


def test_a_worse_loss_is_never_best_and_the_untuned_model_is_no_reference():
    data = frame(
        [("a", "ce", 0, "base", 9.0, 0.001), ("a", "ntl", 0, "ce", -9.0, 0.001)]
    )  # fmt: skip
    found = against_reference(data).set_index("loss")
    assert not found["best"].any()
    assert math.isnan(found.loc["ce", "p_holm"])
