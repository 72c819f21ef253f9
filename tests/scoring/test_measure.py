import json

import pytest

from smmd_bench.plugin_system.registry import load_task
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
    exact = content["metrics"]["exact_match"]["value"]
    assert exact == pytest.approx(100 * scores["exact"].mean())
    counts = content["counts"]
    assert sum(counts["categories"].values()) == content["n"] == 150
    assert counts["categories"]["exact"] == counts["exact"] == scores["exact"].sum()
    assert counts["categories"]["invalid"] == 150 - counts["valid"]
    identity = json.loads(json.dumps(measure_identity(TASK)))
    assert set(identity["metrics"]) == {metric.name for metric in TASK.metrics()}


def test_what_does_not_parse_is_wrong_but_out_of_the_mean_absolute_error(examples):
    answers = answers_of(examples, 1.0, 1)
    answers["completion"] = ["nothing", *examples["target"][1:]]
    _, content = measure(TASK, answers, resamples=20)
    assert content["metrics"]["exact_match"]["value"] == pytest.approx(100 * 149 / 150)
    assert content["metrics"]["mean_absolute_error"]["value"] == 0
    assert content["metrics"]["mean_absolute_error"]["n"] == 149


def test_nothing_parsed_gives_none_and_not_nan(examples):
    _, content = measure(TASK, answers_of(examples, 0.4, 1).assign(completion="?"))
    json.dumps(content, allow_nan=False)
    assert content["metrics"]["r_squared"] == {"value": None, "low": None, "high": None, "n": 0}


def test_a_comparison_is_json_with_differences_and_mcnemar(examples):
    ours, _ = measure(TASK, answers_of(examples, 0.6, 1), resamples=20)
    theirs, _ = measure(TASK, answers_of(examples, 0.2, 2), resamples=20)
    content = json.loads(json.dumps(compare(TASK, ours, theirs, resamples=200), allow_nan=False))
    exact = content["metrics"]["exact_match"]
    assert exact["difference"] == pytest.approx(
        100 * (ours["exact"].mean() - theirs["exact"].mean())
    )
    assert exact["low"] > 0
    pairs = content["mcnemar"]
    assert 100 * (pairs["b"] - pairs["c"]) / 150 == pytest.approx(exact["difference"])
    assert pairs["p"] < 0.001
