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


def test_metrics_and_counts_are_json(examples):
    scores, content = measure(TASK, answers_of(examples, 0.4, 1), resamples=200)
    content = json.loads(json.dumps(content, allow_nan=False))
    assert list(content["metrics"]) == [metric.name for metric in TASK.metrics()]
    for values in content["metrics"].values():
        assert values["low"] <= values["value"] <= values["high"]
    exact = content["metrics"]["exact_match"]
    assert exact["value"] == pytest.approx(100 * scores["exact"].mean())
    assert exact == asdict(statistics.interval(ExactMatch(), scores, resamples=200))
    counts = content["counts"]
    assert sum(counts["categories"].values()) == content["n"] == 150
    assert counts["categories"]["exact"] == counts["exact"] == scores["exact"].sum()
    assert counts["categories"]["invalid"] == 150 - counts["valid"]


def test_the_identity_has_every_version_that_can_change_a_measurement():
    assert json.loads(json.dumps(measure_identity(TASK))) == {
        "task": ["arithmetic", version_of(TASK)],
        "scores": score.VERSION,
        "statistics": [statistics.VERSION, statistics.RESAMPLES],
        "metrics": {metric.name: [version_of(metric), {}] for metric in TASK.metrics()},
    }


def test_a_comparison_is_json_with_differences_and_mcnemar(examples):
    ours, _ = measure(TASK, answers_of(examples, 0.6, 1), resamples=20)
    theirs, _ = measure(TASK, answers_of(examples, 0.2, 2), resamples=20)
    content = json.loads(json.dumps(compare(TASK, ours, theirs, resamples=200), allow_nan=False))
    exact = content["metrics"]["exact_match"]
    assert exact["difference"] == pytest.approx(
        100 * (ours["exact"].mean() - theirs["exact"].mean())
    )
    assert exact["low"] > 0
    assert 100 * (exact["b"] - exact["c"]) / 150 == pytest.approx(exact["difference"])
    assert exact["p"] < 0.001


def test_a_metric_is_compared_where_both_files_have_its_columns(examples):
    answers = answers_of(examples, 0.4, 1)
    ours, _ = measure(TASK, answers.assign(finish_reason="stop"), resamples=20)
    theirs, _ = measure(TASK, answers.drop(columns="finish_reason", errors="ignore"), resamples=20)
    assert "truncation_rate" in compare(TASK, ours, ours, resamples=20)["metrics"]
    for one, other in ((ours, theirs), (theirs, ours)):
        found = compare(TASK, one, other, resamples=20)["metrics"]
        assert found.keys() == {m.name for m in TASK.metrics()} - {"truncation_rate"}


def test_summaries_have_no_numbers_to_count_or_to_test():
    task = load_task("samsum[source=corpus]")
    frame = pd.DataFrame({"uid": ["a", "b"], "target": ["x y", "z"], "completion": ["x y", "w"]})
    scores, content = measure(task, frame, resamples=20)
    assert content["counts"] == {"text_match": 1}
    assert content["metrics"].keys() >= {"rouge1", "rouge2"}  # of what the task itself notes
    assert "exact_match" not in compare(task, scores, scores, resamples=20)["metrics"]
