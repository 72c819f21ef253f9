import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from smmd_bench.reports.math_table import MathTable

from smmd_bench.scoring.gain import holm
from tests.runs import planted_run

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


ANSWERS = [str(at) for at in range(60)]


def right(*kept):
    """Completions that give the answers of these examples alone."""
    return [text if at in kept else "777" for at, text in enumerate(ANSWERS)]


def data_of(path, completions, seeds=(0,)):
    run = planted_run(path, ANSWERS, completions, seeds=seeds)
    return MathTable().build(run).data.drop_duplicates("loss").set_index("loss")


def test_the_losses_of_a_model_and_task_are_one_family(tmp_path):
    losses = {"ce": right(*range(20)), "ntl": right(*range(30)), "smmd": right(*range(32))}
    found = data_of(tmp_path, losses)
    raw = [binomtest(n, n).pvalue for n in (10, 12)]
    assert found.loc[["ntl", "smmd"], "exact_match_gain_p"].tolist() == pytest.approx(by_hand(raw))
    assert found["best"].to_dict() == {"ce": False, "ntl": False, "smmd": True}
    assert np.isnan(found.loc["ce", "exact_match_gain"])


def test_two_that_are_equally_good_are_both_best_and_a_worse_one_never_is(tmp_path):
    many, few = right(*range(40)), right(*range(2))
    losses = {"ce": right(*range(20)), "ntl": many, "smmd": many, "gce": few}
    found = data_of(tmp_path, losses)
    assert found["best"].to_dict() == {"ce": False, "ntl": True, "smmd": True, "gce": False}
    assert found.loc["gce", "exact_match_gain_p"] < 0.05


def test_what_is_best_but_not_significantly_better_is_not_marked(tmp_path):
    found = data_of(tmp_path, {"ce": right(*range(20)), "smmd": right(*range(22))})
    assert found.loc["smmd", "exact_match_gain"] == pytest.approx(100 * 2 / 60)
    assert not found["best"].any()


def test_cross_entropy_of_other_seeds_is_the_noise_floor_and_in_no_family(tmp_path):
    ce = {seed: right(*range(seed, 20 + seed)) for seed in range(4)}
    losses = {"ce": ce, "smmd": dict.fromkeys(range(4), right(*range(40)))}
    found = data_of(tmp_path, losses, seeds=range(4))
    assert found.loc["ce", "exact_match_gain"] == 0  # seed 2 against 0, and 3 against 1
    assert found.loc["ce", "exact_match_gain_low"] < 0 < found.loc["ce", "exact_match_gain_high"]
    assert found.loc["ce", "exact_match_gain_p"] == 1
    assert found["best"].to_dict() == {"ce": False, "smmd": True}
