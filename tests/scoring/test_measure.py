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


@pytest.fixture(scope="module")
def examples():
    return problems(150, seed=3)


def through_json(content):
    return json.loads(json.dumps(content, allow_nan=False))


def test_metrics_are_json(examples):
    scores, content = measure(TASK, answers_of(examples, 0.4, 1), resamples=200)
    metrics = through_json(content)["metrics"]
    assert list(metrics) == [metric.name for metric in TASK.metrics()]
    for values in metrics.values():
        assert values["low"] <= values["value"] <= values["high"]
    assert metrics["exact_match"]["value"] == pytest.approx(100 * scores["exact"].mean())
    estimate = statistics.interval(ExactMatch(), scores, resamples=200)
    assert metrics["exact_match"] == asdict(estimate)


def test_counts_are_json(examples):
    scores, content = measure(TASK, answers_of(examples, 0.4, 1), resamples=200)
    counts = through_json(content)["counts"]
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


def test_a_comparison_is_json_with_differences_and_mcnemar(examples):
    better, _ = measure(TASK, answers_of(examples, 0.6, 1), resamples=20)
    worse, _ = measure(TASK, answers_of(examples, 0.2, 2), resamples=20)
    content = through_json(compare(TASK, better, worse, resamples=200))

    exact = content["metrics"]["exact_match"]
    difference = 100 * (better["exact"].mean() - worse["exact"].mean())
    assert exact["difference"] == pytest.approx(difference)
    assert 100 * (exact["b"] - exact["c"]) / 150 == pytest.approx(difference)
    assert exact["low"] > 0
    assert exact["p"] < 0.001


def test_a_metric_is_compared_where_both_files_have_its_columns(examples):
    answers = answers_of(examples, 0.4, 1).drop(columns="finish_reason", errors="ignore")
    plain, _ = measure(TASK, answers, resamples=20)
    with_reasons, _ = measure(TASK, answers.assign(finish_reason="stop"), resamples=20)
    metrics = compare(TASK, with_reasons, with_reasons, resamples=20)["metrics"]
    assert "truncation_rate" in metrics

    shared = metrics.keys() - {"truncation_rate"}
    for sides in ((with_reasons, plain), (plain, with_reasons)):
        assert compare(TASK, *sides, resamples=20)["metrics"].keys() == shared


def test_summaries_have_no_numbers_to_count_or_to_test():
    task = load_task("samsum[source=corpus]")
    frame = pd.DataFrame({"uid": ["a", "b"], "target": ["x y", "z"], "completion": ["x y", "w"]})
    scores, content = measure(task, frame, resamples=20)
    assert content["counts"] == {"text_match": 1}
    assert content["metrics"].keys() >= {"rouge1", "rouge2"}  # of what the task itself notes
    assert "exact_match" not in compare(task, scores, scores, resamples=20)["metrics"]
