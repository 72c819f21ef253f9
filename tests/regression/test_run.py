"""`regress` does what is missing, once, and compares what is there."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd
import pytest

from smmd_bench.contracts import JobQueue, JobResult, Progress
from smmd_bench.regression import job as jobs
from smmd_bench.regression.comparison import compare, write_comparisons
from smmd_bench.regression.find_suites import find_suites
from smmd_bench.regression.find_targets import find_targets
from smmd_bench.regression.regress import Outcome, find_setting, regress
from smmd_bench.results.frames import read_run
from smmd_bench.run.run_directory import record_failure
from smmd_bench.storage.data_files import VARIABLE
from smmd_bench.storage.files import read_json, write_json
from tests.conftest import LIBRARY_WARNINGS

SUITE = "mmlu_anatomy"


class Here:
    """An executor that runs jobs in this process; `died` ends them without a word."""

    died = False
    slots = 1

    def run(self, queue: JobQueue, folder: Path, progress: Progress) -> Iterator[JobResult]:
        while (job := queue.take()) is not None:
            if self.died:
                yield JobResult(job, "the process was killed by SIGKILL")
                continue
            for place, error in jobs.run_job(job.request(folder), progress).items():
                record_failure(place, "regress", error)
            yield JobResult(job, None)


@pytest.fixture
def executor(mmlu, monkeypatch):
    here = Here()
    monkeypatch.setenv(VARIABLE, str(mmlu))
    monkeypatch.setattr("smmd_bench.regression.regress.load", lambda *_: here)
    return here


def call(
    run: Path,
    limit: int | None = None,
    engine: str = "hf",
    suite: str = SUITE,
    losses: Sequence[str] = (),
) -> Outcome:
    targets, _ = find_targets(run, losses)
    setting = find_setting(engine, limit, None, targets)
    return regress(run, targets, find_suites([suite], None), setting, lambda *_: None)


def addresses(run: Path) -> list[str]:
    return sorted(file.parent.name for file in run.glob("regression/*/results.json"))


def written(run: Path) -> dict[Path, int]:
    return {file: file.stat().st_mtime_ns for file in run.glob("regression/*/*.*")}


def test_nothing_is_evaluated_twice(make_run, executor, monkeypatch):
    run = make_run()
    assert call(run) == Outcome(run, True)
    first = written(run)
    assert len(addresses(run)) == 3
    monkeypatch.setattr(jobs, "run_job", None)
    assert call(run) == Outcome(run)
    assert written(run) == first
    frame = read_run(run).regression
    assert frame["loss"].tolist() == ["base", "ce", "smmd"]
    assert frame["against_loss"].fillna("").tolist() == ["", "base", "ce"]
    assert frame["task"].fillna("").tolist() == ["", "gsm8k", "gsm8k"]
    assert set(frame["n"]) == {2}
    assert frame["limit"].isna().all()


def test_what_dies_half_way_is_not_there_and_is_done_again(make_run, executor, monkeypatch):
    run = make_run()
    write = jobs.write_json

    def full(path, content):
        suite = read_json(path.parent / "suite.json")
        if path.name == "results.json" and suite is not None and suite["loss"] == "ce":
            raise OSError("No space left on device")
        write(path, content)

    monkeypatch.setattr(jobs, "write_json", full)
    outcome = call(run)
    assert list(outcome.failed) == [f"{SUITE} ce seed 0"]
    assert "free some space" in outcome.failed[f"{SUITE} ce seed 0"]
    whole = addresses(run)
    assert len(whole) == 2
    assert set(read_run(run).regression["loss"]) == {"base", "smmd"}
    monkeypatch.setattr(jobs, "write_json", write)
    assert call(run) == Outcome(run, True)
    assert set(whole) < set(addresses(run))
    assert not list(run.glob("regression/*/FAILED.json"))


def test_a_job_that_dies_fails_what_it_left(make_run, executor):
    run = make_run(losses=("smmd",))
    executor.died = True
    assert call(run).failed == dict.fromkeys(
        (f"{SUITE} base", f"{SUITE} smmd seed 0"), "the process was killed by SIGKILL"
    )
    executor.died = False
    assert call(run) == Outcome(run, True)
    frame = read_run(run).regression
    assert frame["against_loss"].fillna("").tolist() == ["", "base"]  # there is no CE


def test_each_is_compared_with_ce_whichever_call_made_it(make_run, executor):
    run = make_run()
    seen = []
    for losses in (["base", "smmd"], ["ce"], ["base", "smmd"]):
        assert call(run, losses=losses).failed == {}
        seen.append(read_run(run).regression.set_index("loss")["against_loss"].to_dict())
    assert seen[0]["smmd"] == "base"
    assert seen[1] == seen[2]
    assert (seen[1]["ce"], seen[1]["smmd"]) == ("base", "ce")
    cells = read_run(run).cells.set_index("loss")["address"]
    selection = run / "cells" / cells["ce"] / "selection.json"
    write_json(selection, {**(read_json(selection) or {}), "best_epoch": 3})  # as if trained anew
    write_comparisons(read_run(run))
    frame = read_run(run).regression.set_index("loss")
    assert list(frame.index) == ["base", "smmd"]
    assert frame["against_loss"].fillna("").to_dict() == {"base": "", "smmd": "base"}


def test_weights_that_training_did_not_write_are_refused(make_run, executor):
    run = make_run()
    cells = read_run(run).cells.set_index("loss")["address"]
    file, other = (run / "cells" / cells[loss] / "train.json" for loss in ("smmd", "ce"))
    receipt = read_json(file) or {}
    receipt["epochs"][-1]["canary"] = (read_json(other) or {})["epochs"][-1]["canary"]
    write_json(file, receipt)
    failed = call(run).failed
    assert list(failed) == [f"{SUITE} smmd seed 0"]
    assert "does not run the weights of checkpoint 'smmd seed 0'" in failed[f"{SUITE} smmd seed 0"]


@pytest.mark.engine
@pytest.mark.slow
@pytest.mark.filterwarnings(*LIBRARY_WARNINGS)
def test_vllm_answers_as_transformers(make_run, executor):
    """One engine; adapters merged, swapped in, and checked by the canary of their training."""
    run = make_run()
    suite = "mmlu_social_sciences"
    assert call(run, engine="hf", suite=suite) == Outcome(run, True)
    assert call(run, engine="vllm", suite=suite) == Outcome(run, True)
    frame = read_run(run).regression
    assert len(addresses(run)) == 6  # the engine is a part of the address
    for _, pair in frame.groupby("loss"):
        files = [run / "regression" / a / "samples.parquet" for a in pair["address"].unique()]
        one, other = map(pd.read_parquet, files)
        assert len(one) == 24
        pd.testing.assert_frame_equal(one, other)
    by_loss = frame[(frame["engine"] == "vllm") & (frame["kind"] == "group")]
    assert by_loss["value"].nunique() > 1


def test_a_comparison_is_paired_by_question():
    right = [1.0, 1.0, 1.0, 0.0, 0.0]
    mine = pd.DataFrame({"subtask": ["a"] * 3 + ["b"] * 2, "doc_id": [0, 1, 2, 0, 1], "acc": right})
    other = mine.assign(acc=[0.0, 1.0, 0.0, 0.0, 1.0]).iloc[::-1]
    found = compare(mine, other, "acc")
    assert found["difference"] == pytest.approx(20)
    assert found["low"] <= 20 <= found["high"]
    assert (found["b"], found["c"], found["n"]) == (2, 1, 5)
    shares = [frame.rename(columns={"acc": "rouge1"}) for frame in (mine, other)]
    assert "p" not in compare(*shares, "rouge1")


def test_questions_that_changed_between_two_are_left_out():
    mine = pd.DataFrame(
        {"subtask": "a", "doc_id": range(4), "doc_hash": list("wxyz"), "acc": [1.0, 0.0, 1.0, 1.0]}
    )
    other = mine.assign(doc_hash=list("w?y?"), acc=[0.0, 0.0, 1.0, 0.0])
    found = compare(mine, other, "acc")
    assert (found["difference"], found["n"], found["left_out"]) == (50.0, 2, 2)
    assert compare(mine, other.assign(doc_hash="-"), "acc") == {}
    assert compare(mine, other.drop(columns="doc_hash"), "acc")["left_out"] == 0
