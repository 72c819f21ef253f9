"""Our numbers are lm-eval's: its own model class, its own loop, its own command line."""

import json
import logging
import math
import os
import subprocess
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from smmd_bench.regression.evaluation import Evaluation, plan
from smmd_bench.regression.find_suites import find_suites
from smmd_bench.regression.find_targets import find_targets
from smmd_bench.regression.job import run_job
from smmd_bench.regression.mmlu_data import lm_eval_mmlu
from smmd_bench.regression.regress import find_setting, job_for
from smmd_bench.storage.data_files import VARIABLE
from smmd_bench.storage.files import read_json

from .conftest import LM_EVAL, SHORT

REAL = Path(os.environ.get(VARIABLE, "")) / "mmlu" / "cais" / "mmlu"
GROUPS = ("mmlu", "mmlu_stem", "mmlu_humanities", "mmlu_social_sciences", "mmlu_other")
needs_real = pytest.mark.skipif(
    VARIABLE not in os.environ or not REAL.is_dir(),
    reason=f"{VARIABLE} names no folder with mmlu/cais/mmlu",
)


def evaluate(
    run: Path, suite: str, limit: int | None, losses: list[str], engine: str = "hf"
) -> list[tuple[dict[str, Any], pd.DataFrame]]:
    """results.json and samples.parquet of each checkpoint, evaluated in this process."""
    targets, _ = find_targets(run, losses)
    evaluations = plan(
        targets, find_suites([suite], None), find_setting(engine, limit, None, targets)
    )
    said: list[str] = []
    failures = run_job(payload(run, evaluations), lambda what, done, total: said.append(what))
    assert not failures
    found = []
    for evaluation in evaluations:
        assert evaluation.is_done(run)
        results = read_json(evaluation.folder(run) / "results.json")
        assert results is not None
        results["said"] = said
        found.append((results, pd.read_parquet(evaluation.folder(run) / "samples.parquet")))
    return found


def payload(run: Path, evaluations: list[Evaluation]) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(json.dumps(job_for(evaluations).request(run)))
    return content


def by_hand(model: Any, tokenizer: Path, data: Path, limit: int) -> Any:
    """MMLU with lm-eval's HFLM and `simple_evaluate`, the data given by a group file of our own."""
    from lm_eval import simple_evaluate
    from lm_eval.models.huggingface import HFLM
    from lm_eval.tasks import TaskManager

    folder = data.parent / f"hand-{limit}"
    folder.mkdir(exist_ok=True)
    content = {
        "group": "by_hand", "task": list(GROUPS[1:]), "dataset_path": str(data),
        "aggregate_metric_list": [{"metric": "acc", "weight_by_size": True}],
    }  # fmt: skip
    (folder / "by_hand.yaml").write_text(yaml.safe_dump(content))
    manager = TaskManager(include_path=[lm_eval_mmlu(), folder], include_defaults=False)
    return simple_evaluate(
        model=HFLM(pretrained=model, tokenizer=str(tokenizer), batch_size=1),
        tasks=["by_hand"],
        task_manager=manager,
        num_fewshot=5,
        limit=limit,
    )


def merged(base: Path, adapter: Path) -> Any:
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    return PeftModel.from_pretrained(
        AutoModelForCausalLM.from_pretrained(base), adapter
    ).merge_and_unload()


def assert_same(results: dict[str, Any], samples: pd.DataFrame, hand: Any) -> None:
    rows = {row["name"]: row for row in results["rows"]}
    assert len(rows) == 62  # 57 subjects, four groups and the whole
    for name, row in rows.items():
        theirs = hand["results"]["by_hand" if name == "mmlu" else name]
        assert row["value"] == pytest.approx(100 * theirs["acc,none"], abs=1e-9)
        assert row["stderr"] == pytest.approx(100 * theirs["acc_stderr,none"], abs=1e-9)
        assert row["n"] == theirs["sample_len"]
        assert row["kind"] == ("group" if name in GROUPS else "task")
    right = {
        (name, sample["doc_id"]): sample["acc"]
        for name, logged in hand["samples"].items()
        for sample in logged
    }
    assert right == {(s.subtask, s.doc_id): s.acc for s in samples.itertuples()}


@pytest.mark.slow
def test_adapters_equal_lm_eval_by_hand(make_run, checkpoints, mmlu, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(mmlu))
    (results, samples), (_, others) = evaluate(make_run(), "mmlu", 2, ["base", "smmd"])[::-1]
    model = merged(checkpoints.base, checkpoints.adapters["smmd"])
    hand = by_hand(model, checkpoints.base, mmlu / "mmlu" / "cais" / "mmlu", 2)
    assert_same(results, samples, hand)
    assert not samples["acc"].equals(others["acc"])  # the adapter tells
    assert results["shots"] == 5
    assert results["documents"] == 114
    assert results["truncated"] == 0
    groups = {row["name"]: row for row in results["rows"] if row["kind"] == "group"}
    subjects = [row for row in results["rows"] if row["kind"] == "task"]
    n = sum(row["n"] for row in subjects)
    assert groups["mmlu"]["value"] == pytest.approx(100 * samples["acc"].mean())
    variance = sum(row["stderr"] ** 2 * row["n"] * (row["n"] - 1) for row in subjects)
    pooled = math.sqrt(variance / (n - len(subjects)) / n)
    assert groups["mmlu"]["stderr"] == pytest.approx(pooled)


def test_what_does_not_fit_the_context_is_counted(make_run, checkpoints, mmlu, monkeypatch, caplog):
    """lm-eval itself says no more than one line in its log for each."""
    monkeypatch.setenv(VARIABLE, str(mmlu))
    run = make_run(base=checkpoints.short, losses=())
    logging.getLogger("lm_eval").setLevel(logging.WARNING)
    monkeypatch.setattr("logging.Logger.setLevel", lambda *_: None)
    for suite, some in (("mmlu_stem", True), ("mmlu_high_school_us_history", False)):
        caplog.clear()
        ((results, samples),) = evaluate(run, suite, None, ["base"])
        lines = [line for line in caplog.messages if line.startswith("Combined length of context")]
        assert results["context"] == SHORT
        assert results["truncated"] == samples["truncated"].sum() == len(lines)
        assert (0 < len(lines) < len(samples)) == some
        what = f"{len(lines)} of {len(samples)} prompts" if some else "every prompt"
        start = f"{suite} base: {what} had more tokens than the context of {SHORT} "
        assert any(said.startswith(start) for said in results["said"])


@pytest.mark.engine
@pytest.mark.slow
@needs_real
def test_a_whole_subject_equals_the_command_line(make_run, checkpoints, tmp_path):
    ((results, samples),) = evaluate(make_run(losses=()), "mmlu_abstract_algebra", None, ["base"])
    (tmp_path / "suite").mkdir()
    content = {
        "include": str(lm_eval_mmlu() / "mmlu_abstract_algebra.yaml"),
        "task": "alone", "dataset_path": str(REAL.resolve()),
    }  # fmt: skip
    (tmp_path / "suite" / "alone.yaml").write_text(yaml.safe_dump(content))
    done = subprocess.run(
        [
            LM_EVAL, "run", "--model", "hf", "--model_args",
            f"pretrained={checkpoints.base},dtype=float32", "--include_path",
            str(tmp_path / "suite"), "--tasks", "alone", "--num_fewshot", "5", "--device", "cpu",
            "--batch_size", "4", "--output_path", str(tmp_path / "out"), "--log_samples",
        ],
        capture_output=True,
        text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (file,) = (tmp_path / "out").rglob("results_*.json")
    theirs = json.loads(file.read_text())["results"]["alone"]
    (row,) = results["rows"]
    assert row["n"] == len(samples) == 100
    assert row["value"] == 100 * theirs["acc,none"]
    assert row["stderr"] == 100 * theirs["acc_stderr,none"]
    (file,) = (tmp_path / "out").rglob("samples_*.jsonl")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert {line["doc_id"]: line["acc"] for line in lines} == dict(
        zip(samples["doc_id"], samples["acc"], strict=True)
    )
