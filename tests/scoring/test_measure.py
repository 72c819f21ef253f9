import json
from dataclasses import asdict

import pandas as pd
import pytest

from smmd_bench.contracts import ExactMatch
from smmd_bench.plugin_system.plugin_source import version_of
from smmd_bench.plugin_system.registry import load_task
from smmd_bench.scoring import score, statistics
from smmd_bench.scoring.measure import compare, measure, measure_identity
from tests.arithmetic_problems import answers_of, problems

TASK = load_task("arithmetic")


def through_json(content):
    return json.loads(json.dumps(content, allow_nan=False))


@pytest.fixture(scope="module")
def measured():
    """Scores of 150 examples, 40 % of them right, and what metrics.json says of them."""
    scores, content = measure(
        TASK, answers_of(problems(150, seed=3), 0.4, 1), resamples=200
    )
    return scores, through_json(content)


def test_metrics_are_json(measured):
    scores, content = measured
    metrics = content["metrics"]
    assert list(metrics) == [metric.name for metric in TASK.metrics()]
    for values in metrics.values():
        assert values["low"] <= values["value"] <= values["high"]
    estimate = statistics.interval(ExactMatch(), scores, resamples=200)
    assert metrics["exact_match"] == asdict(estimate)


def test_counts_are_json(measured):
    scores, content = measured
    counts = content["counts"]
    categories = counts["categories"]
    assert sum(categories.values()) == content["n"] == 150
    assert categories["exact"] == counts["exact"] == scores["exact"].sum()
    assert categories["invalid"] == 150 - counts["valid"]


def test_the_identity_has_every_version_that_can_change_a_measurement():
    assert through_json(measure_identity(TASK)) == {
        "task": ["arithmetic", version_of(TASK)],
        "scores": score.VERSION,
        "statistics": [statistics.VERSION, statistics.RESAMPLES],
        "metrics": {metric.name: [version_of(metric), {}] for metric in TASK.metrics()},
    }


def test_a_comparison_is_json_with_differences_and_mcnemar(measured):
    worse, _ = measured
    better, _ = measure(TASK, answers_of(problems(150, seed=3), 0.7, 2), resamples=20)
    exact = through_json(compare(TASK, better, worse))["metrics"]["exact_match"]
    expected = 100 * (better["exact"].mean() - worse["exact"].mean())
    assert exact["difference"] == pytest.approx(expected)
    assert exact["b"] - exact["c"] == pytest.approx(expected * 1.5)  # of 150 examples
    assert exact["p"] < 0.001


@pytest.mark.parametrize("turned", [False, True])
def test_a_metric_is_compared_where_both_files_have_its_columns(measured, turned):
    with_reasons = measured[0].assign(truncated=False)
    metrics = compare(TASK, with_reasons, with_reasons, resamples=20)["metrics"]
    assert "truncation_rate" in metrics

    sides = [with_reasons, with_reasons.drop(columns="truncated")]
    shared = compare(TASK, *sides[:: -1 if turned else 1], resamples=20)["metrics"]
    assert shared.keys() == metrics.keys() - {"truncation_rate"}


def test_summaries_have_no_numbers_to_count_or_to_test():
    task = load_task("samsum[source=corpus]")
    columns = ["uid", "target", "completion"]
    rows = [("a", "x y", "x y"), ("b", "z", "w")]
    frame = pd.DataFrame(rows, columns=columns)
    scores, content = measure(task, frame, resamples=20)
    assert content["counts"] == {"text_match": 1}
    # of what the task itself notes
    assert content["metrics"].keys() >= {"rouge1", "rouge2"}
    comparison = compare(task, scores, scores, resamples=20)
    assert "exact_match" not in comparison["metrics"]
