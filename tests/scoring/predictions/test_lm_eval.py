"""A samples file that lm-eval itself writes, by a model of fixed answers, with two filters."""

import gzip
import os
import subprocess
import sys

import pytest

from smmd_bench.errors import UserError
from smmd_bench.plugin_system.registry import load_task
from smmd_bench.results.frames import read_run
from smmd_bench.run.predictions import score_predictions

from ...conftest import DATA
from .conftest import COUNT, TASK, json_lines

ANSWERS = ["{target}", "{target}\nand so on", "the answer is {target}", "999", "{target}"]
"""The parser reads the first line, so that the third and fourth are wrong."""

PROGRAM = """
import json
from lm_eval.api.model import LM
from lm_eval.api.task import ConfigurableTask
from lm_eval.evaluator import evaluate
from lm_eval.loggers import EvaluationTracker

class Fixed(LM):
    def generate_until(self, requests):
        return [request.doc["given"] for request in requests]
    def loglikelihood(self, requests):
        raise NotImplementedError
    loglikelihood_rolling = loglikelihood

regex = {"function": "regex", "regex_pattern": "([0-9]+)"}
task = ConfigurableTask(config={
    "task": "easy",
    "dataset_path": "json",
    "dataset_kwargs": {"data_files": {"test": "data.jsonl"}},
    "test_split": "test",
    "output_type": "generate_until",
    "doc_to_text": "{{question}}",
    "doc_to_target": "{{answer}}",
    "generation_kwargs": {"until": ["Q:"]},
    "metric_list": [{"metric": "exact_match"}],
    "filter_list": [
        {"name": "strict-match", "filter": [regex, {"function": "take_first"}]},
        {"name": "flexible-extract", "filter": [regex, {"function": "take_first"}]},
    ],
})
results = evaluate(Fixed(), {"easy": task}, log_samples=True, bootstrap_iters=0)
tracker = EvaluationTracker(output_path="out")
tracker.general_config_tracker.model_name_sanitized = "fixed"
tracker.date_id = "2026-11-21"
tracker.save_results_samples("easy", results["samples"]["easy"])
"""


@pytest.fixture(scope="module")
def samples(examples, tmp_path_factory):
    folder = tmp_path_factory.mktemp("lm_eval")
    rows = [
        {"question": e.prompt, "answer": e.target, "given": answer.format(target=e.target)}
        for e, answer in zip(examples, ANSWERS, strict=True)
    ]
    json_lines(folder / "data.jsonl", rows)
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(folder / "hub")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return folder / "out" / "fixed" / "samples_easy_2026-11-21.jsonl"


def test_the_raw_answers_are_scored_once_a_document(samples, tmp_path):
    assert len(samples.read_text().splitlines()) == 2 * COUNT
    said = []
    outcome = score_predictions(TASK, [samples], limit=COUNT, out=tmp_path / "out", say=said.append)
    frame = read_run(outcome.path).completions
    assert frame["exact"].tolist() == [True, True, False, False, True]
    assert frame["completion"].iloc[1].endswith("\nand so on")
    assert said == [
        f"{samples}: lm-eval samples, 5 completions by id, as the position of the example in the "
        "split (from 0)."
    ]


def test_samples_of_other_documents_are_refused(samples, tmp_path):
    with pytest.raises(UserError, match=r"line 1: its question '.*' is not that of .* test-1-0, "):
        score_predictions(TASK, [samples], limit=COUNT, data_seed=1, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_samples_with_shots_are_those_of_their_task_and_of_no_other(tmp_path, monkeypatch):
    monkeypatch.setenv("SMMD_BENCH_DATA", str(DATA))
    rows = [
        {
            "doc_id": at,
            "doc": {"question": e.prompt.removeprefix("Question: ").removesuffix("\nAnswer:")},
            "target": e.target,
            "arguments": {"gen_args_0": {"arg_0": f"Question: 1?\nAnswer: 1\n\n{e.prompt}"}},
            "resps": [[e.target]],
            "filter": "strict-match",
        }
        for at, e in enumerate(load_task("gsm8k").examples("test", 0, COUNT))
    ]
    for form in (rows, [{**row, "doc": {}} for row in rows]):
        file = json_lines(tmp_path / "samples_gsm8k.jsonl", form)
        (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(file.read_bytes()))
        for path in (file, tmp_path / "a.jsonl.gz"):
            out = score_predictions("gsm8k", [path], limit=COUNT, out=tmp_path / path.suffix[1:])
            assert read_run(out.path).completions["exact"].all()
        for task in ("arithmetic", TASK, "svamp[source=synthetic]"):
            with pytest.raises(UserError, match=r"line 1: its .* is not that of the example"):
                score_predictions(task, [file], limit=COUNT, out=tmp_path / "no")
