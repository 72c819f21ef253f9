"""The record and its samples are of every_eval_ever's schema 0.3.0."""

import hashlib
import json

import pytest
from jsonschema import Draft7Validator

from tests.docs.commands import repository
from tests.runs import quick_run

SCHEMAS = repository("tests/data/every_eval_ever")


def validate(content, name):
    Draft7Validator(json.loads((SCHEMAS / name).read_text(encoding="utf-8"))).validate(content)


def read(folder):
    """The record, its samples, and the bytes of these, where the record says they are."""
    root = folder / "every_eval_ever"
    (file,) = (f for f in root.glob("data/*/*/*/*.json"))
    record = json.loads(file.read_text(encoding="utf-8"))
    raw = (root / record["detailed_evaluation_results"]["file_path"]).read_bytes()
    return record, [json.loads(line) for line in raw.splitlines()], raw


@pytest.mark.parametrize("task", ["arithmetic", "gsm8k", "samsum"])
def test_record_and_samples_are_of_the_schema(task, tmp_path, export):
    quick_run(tmp_path / "run", tasks=(task,))
    record, samples, raw = read(export(tmp_path / "run"))
    validate(record, "eval.schema.json")
    assert samples
    for sample in samples:
        validate(sample, "instance_level_eval.schema.json")
        assert sample["evaluation_id"] == record["evaluation_id"]
        assert sample["model_id"] == record["model_info"]["id"]
    said = record["detailed_evaluation_results"]
    assert said["checksum"] == hashlib.sha256(raw).hexdigest()
    assert said["total_rows"] == len(samples)


def test_the_mean_of_the_samples_is_the_first_score(arithmetic_run, export):
    record, samples, _ = read(export(arithmetic_run, "--seed", 0))
    first = record["evaluation_results"][0]
    mean = sum(sample["evaluation"]["score"] for sample in samples) / len(samples)
    assert first["score_details"]["score"] == pytest.approx(mean)
    interval = first["score_details"]["uncertainty"]["confidence_interval"]
    assert interval["lower"] <= mean <= interval["upper"]


def test_each_interval_is_called_what_it_is(arithmetic_run, export):
    record, _, _ = read(export(arithmetic_run, "--seed", 0))
    found = {
        result["evaluation_result_id"]: result["score_details"]["uncertainty"]
        for result in record["evaluation_results"]
    }
    accuracy, error = found["exact_match"], found["mean_absolute_error"]
    assert accuracy["confidence_interval"]["method"] == "Wilson score"
    assert error["confidence_interval"]["method"] == "bootstrap over examples"
    assert ["num_bootstrap_samples" in one for one in (accuracy, error)] == [False, True]


def test_the_schema_refuses_a_record_without_its_scores(arithmetic_run, export):
    record, _, _ = read(export(arithmetic_run, "--seed", 0))
    del record["evaluation_results"][0]["score_details"]
    with pytest.raises(Exception, match="score_details"):
        validate(record, "eval.schema.json")
