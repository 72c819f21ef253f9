"""Mean and median of p(number): against slow loops over exact fractions."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smmd_bench.contracts import MeanAbsoluteError
from smmd_bench.plugin_system.registry import load_task
from smmd_bench.scoring.decoding_rules import RULES, metrics_under
from smmd_bench.scoring.measure import compare, measure, rule_columns
from smmd_bench.scoring.score import score_frame

TASK = load_task("arithmetic")
TEXTS = st.sampled_from(["7", "-3/2", "1/2", "0.5", "12", "no idea", "", "-40"])
BEAMS = st.lists(st.tuples(TEXTS, st.integers(1, 99)), max_size=8)


def completions(targets):
    uids = [f"e{at}" for at in range(len(targets))]
    return pd.DataFrame({"uid": uids, "target": targets, "completion": targets})


def frame_of(beams):
    rows = [(f"e{at}", *beam) for at, found in enumerate(beams) for beam in found]
    frame = pd.DataFrame(rows, columns=["uid", "text", "p"])
    return frame.assign(log_probability=np.log(frame.pop("p").astype("float64")))


def slow(beams):
    """Mass, mean and median of the parsed beams of one example, as fractions."""
    p = {}
    for text, weight in beams:
        if (answer := TASK.parse(text)) is not None:
            p[answer.value] = p.get(answer.value, Fraction(0)) + weight
    mass = sum(p.values())
    if not p:
        return 0, None, None
    mean = sum(value * weight for value, weight in p.items()) / mass
    below = Fraction(0)
    for value in sorted(p):
        below += p[value]
        if 2 * below >= mass:
            return mass, mean, value
    raise AssertionError


@given(st.lists(BEAMS, min_size=1, max_size=4))
def test_rules_are_those_of_a_loop_over_fractions(drawn):
    targets = ["7", "-3/2", "0", "12"][: len(drawn)]
    scores = score_frame(TASK, completions(targets))
    found = rule_columns(TASK, frame_of(drawn), scores)
    for at, beams in enumerate(drawn):
        mass, *values = slow(beams)
        row, answer = found.loc[at], TASK.parse(targets[at]).value
        values = [answer if value is None else value for value in values]  # greedy ones
        np.testing.assert_allclose(row["number_mass"], float(mass))
        for rule, value in zip(RULES, values, strict=True):
            assert row[f"valid[{rule}]"]
            np.testing.assert_allclose(row[f"parsed[{rule}]"], float(value), atol=1e-12)
            error = float(abs(value - answer))
            np.testing.assert_allclose(row[f"error[{rule}]"], error, atol=1e-12)


def test_a_rule_gives_the_greedy_number_where_no_beam_holds_one():
    frame = completions(["123456", "1", "2"]).assign(completion=["999999", "none", "3"])
    drawn = frame_of([[], [], [("2", 0.5)]])
    found = rule_columns(TASK, drawn, score_frame(TASK, frame))
    assert found["valid[median]"].tolist() == [True, False, True]
    assert found["parsed[median]"].tolist()[::2] == [999999, 2]
    assert found["error[mean]"].tolist()[::2] == [999999 - 123456, 0]
    assert found["number_mass"].tolist() == [0, 0, 0.5]


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


def test_rules_are_measured_and_compared_where_they_answered():
    targets = [str(at) for at in range(8)]
    beams = [[(target, 0.6), (str(int(target) + 2), 0.4)] for target in targets]
    plain, content = measure(TASK, completions(targets), resamples=10)
    assert "mean_absolute_error[mean]" not in content["metrics"]
    ruled, content = measure(
        TASK, completions(targets), beams=frame_of(beams), rules=("mean",), resamples=10
    )
    assert content["metrics"]["mean_absolute_error[mean]"]["value"] == pytest.approx(0.8)
    assert content["metrics"]["mean_absolute_error"]["value"] == 0
    assert "mean_absolute_error[median]" not in content["metrics"]
    other = ruled.assign(**{"error[mean]": ruled["error[mean]"] + 1})
    found = compare(TASK, other, ruled, resamples=10)["metrics"]
    assert found["mean_absolute_error[mean]"]["difference"] == pytest.approx(1)
    assert found[MeanAbsoluteError.name]["difference"] == 0
    assert "mean_absolute_error[mean]" not in compare(TASK, ruled, plain, resamples=10)["metrics"]
