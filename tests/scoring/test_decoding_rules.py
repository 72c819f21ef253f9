"""Mean and median of p(number): against slow loops over exact fractions."""

import math
from collections import Counter
from functools import partial
from itertools import accumulate

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smmd_bench.plugin_system.registry import load_task
from smmd_bench.scoring.decoding_rules import RULES, metrics_under
from smmd_bench.scoring.measure import compare, measure, rule_columns
from smmd_bench.scoring.score import score_frame

TASK = load_task("arithmetic")
TEXTS = st.sampled_from(["7", "-3/2", "1/2", "0.5", "12", "no idea", "", "-40"])
BEAMS = st.lists(st.tuples(TEXTS, st.integers(1, 99)), max_size=8)
assert_close = partial(np.testing.assert_allclose, atol=1e-12)


def completions(targets):
    """Completions that are their targets."""
    uids = [f"e{at}" for at in range(len(targets))]
    return pd.DataFrame({"uid": uids, "target": targets, "completion": targets})


def frame_of(beams_of_examples):
    """A frame of beams, from the (text, probability) of those of each example."""
    rows = []
    for at, beams in enumerate(beams_of_examples):
        rows += [(f"e{at}", text, math.log(p)) for text, p in beams]
    return pd.DataFrame(rows, columns=["uid", "text", "log_probability"])


def slow(beams):
    """Mass, mean and median of the parsed beams of one example, as fractions."""
    weights = Counter()
    for text, weight in beams:
        answer = TASK.parse(text)
        if answer is not None:
            weights[answer.value] += weight

    if not weights:
        return 0, None, None

    mass = weights.total()
    mean = sum(value * weight for value, weight in weights.items()) / mass

    # The median is the least value with half of the mass at or below it.
    at_or_below = accumulate(weights[value] for value in sorted(weights))
    reached = [2 * weight >= mass for weight in at_or_below]
    return mass, mean, sorted(weights)[reached.index(True)]


@given(st.lists(BEAMS, min_size=1, max_size=4))
def test_rules_are_those_of_a_loop_over_fractions(drawn):
    targets = ["7", "-3/2", "0", "12"][: len(drawn)]
    columns = rule_columns(
        TASK, frame_of(drawn), score_frame(TASK, completions(targets))
    )
    for at, beams in enumerate(drawn):
        row = columns.loc[at]
        answer = TASK.parse(targets[at]).value
        mass, *by_rule = slow(beams)
        assert_close(row["number_mass"], mass)

        for rule, value in zip(RULES, by_rule, strict=True):
            # Without a number among the beams, the greedy one counts: here the target.
            expected = answer if value is None else value
            assert row[f"valid[{rule}]"]
            assert_close(row[f"parsed[{rule}]"], float(expected))
            assert_close(row[f"error[{rule}]"], float(abs(expected - answer)))


def test_a_rule_gives_the_greedy_number_where_no_beam_holds_one():
    frame = completions(["123456", "1", "2"]).assign(completion=["999999", "none", "3"])
    beams = frame_of([[], [], [("2", 0.5)]])
    columns = rule_columns(TASK, beams, score_frame(TASK, frame))
    assert columns["valid[median]"].tolist() == [True, False, True]
    assert columns["parsed[median]"].tolist()[::2] == [999999, 2]
    assert columns["error[mean]"].tolist()[::2] == [999999 - 123456, 0]
    assert columns["number_mass"].tolist() == [0, 0, 0.5]


@pytest.mark.parametrize(
    ("task", "errors"),
    [
        ("arithmetic", ["mean_absolute_error", "trimmed_absolute_error", "r_squared"]),
        ("clock_time", ["time_gap", "time_gap_wrapped"]),
        ("chartqa", []),
        ("samsum[source=corpus]", []),
    ],
)
def test_only_metrics_of_the_error_have_rules(task, errors):
    plugin = load_task(task)
    assert [*metrics_under(plugin, "greedy").values()] == [*plugin.metrics()]
    assert [*metrics_under(plugin, "mean")] == [f"{name}[mean]" for name in errors]


@pytest.fixture(scope="module")
def ruled():
    """Scores under the mean of two beams, of which the likelier is right: each error is 0.8."""
    targets = [str(at) for at in range(8)]
    beams = frame_of(
        [[(target, 0.6), (str(int(target) + 2), 0.4)] for target in targets]
    )
    return measure(
        TASK, completions(targets), beams=beams, rules=("mean",), resamples=10
    )


def test_rules_are_measured_where_they_answered(ruled):
    metrics = ruled[1]["metrics"]
    assert metrics["mean_absolute_error[mean]"]["value"] == pytest.approx(0.8)
    assert metrics["mean_absolute_error"]["value"] == 0
    assert "mean_absolute_error[median]" not in metrics


def test_rules_are_compared_where_both_have_them(ruled):
    scores, _ = ruled
    worse = scores.assign(**{"error[mean]": scores["error[mean]"] + 1})
    metrics = compare(TASK, worse, scores, resamples=10)["metrics"]
    assert metrics["mean_absolute_error[mean]"]["difference"] == pytest.approx(1)
    assert metrics["mean_absolute_error"]["difference"] == 0


def test_without_beams_no_rule_is_measured_or_compared(ruled):
    scores, _ = ruled
    plain, content = measure(TASK, completions(scores["uid"].str[1:]), resamples=10)
    compared = compare(TASK, scores, plain, resamples=10)
    for metrics in (content["metrics"], compared["metrics"]):
        assert "mean_absolute_error" in metrics
        assert "mean_absolute_error[mean]" not in metrics
