"""The run folder: what is in it, what the reports make of it, and what a second command does."""

import json
import logging
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from smmd_bench.tasks.arithmetic import Arithmetic

from smmd_bench.contracts import Answer, Example
from smmd_bench.errors import UserError
from smmd_bench.experiment.experiment import Experiment
from smmd_bench.plugin_system import registry
from smmd_bench.plugin_system.registry import load, load_task
from smmd_bench.publishing.write_reports import write_reports, write_some_reports
from smmd_bench.results.frames import read_run
from smmd_bench.run.predictions import score_predictions
from smmd_bench.run.run_directory import Outcome, RunDirectory
from smmd_bench.storage.files import read_json
from tests.in_process import coarse_figures

from ...conftest import DATA
from .conftest import COUNT, TASK, json_lines


def wrong(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "completion": str(Fraction(row["completion"]) + 1)}


@pytest.fixture
def files(tmp_path, right):
    """Two files, of which the first has 4 right answers and the second 2."""
    return [
        json_lines(tmp_path / "smmd.jsonl", [*right[:4], wrong(right[4])]),
        json_lines(tmp_path / "ours.jsonl", [*map(wrong, right[:3]), *right[3:]]),
    ]


def scored(files: Sequence[Path], **options: Any) -> Outcome:
    out = files[0].parent / "out"
    return score_predictions(TASK, files, **{"limit": COUNT, "out": out, **options})


def contents(folder: Path) -> dict[str, int]:
    """Every file of a run and when it was written."""
    return {
        str(path.relative_to(folder)): path.stat().st_mtime_ns
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".lock"
    }


def test_the_folder_is_that_of_a_run_and_says_what_was_read(files):
    outcome = scored(files, model="Qwen/Qwen2.5-0.5B")
    run = read_run(outcome.path)
    assert run.cells["status"].tolist() == ["done", "done"]
    assert run.cells["loss"].tolist() == ["smmd", "ours"]
    assert run.cells["model"].tolist() == ["Qwen/Qwen2.5-0.5B"] * 2
    assert run.cells["params"].isna().all()
    for address, more in zip(run.cells["address"], (set(), {"comparison.json"}), strict=True):
        left = {path.name for path in (outcome.path / "cells" / address).iterdir()}
        parts = {"cell.json", "completions.parquet", "scores.parquet", "metrics.json"}
        assert left == parts | more
    assert run.manifest["predictions"]["labels"] == ["smmd", "ours"]
    assert run.manifest["files"]["ours"]["matched_by"] == "uid"
    assert run.manifest["files"]["ours"]["path"] == str(files[1])
    data = run.manifest["data"][TASK]
    assert (data["licence"], data["sizes"]) == (Arithmetic.licence, {"test": COUNT})
    assert run.manifest["predictions"] == {
        "task": TASK, "split": "test", "data_seed": 0, "limit": COUNT,
        "model": "Qwen/Qwen2.5-0.5B", "labels": ["smmd", "ours"],
    }  # fmt: skip
    assert run.manifest["experiment"]["data_seed"] == 0
    contents = [read_json(file) for file in outcome.path.glob("cells/*/cell.json")]
    assert {content["reference"] for content in contents} == {"smmd"}


def test_metrics_and_comparisons_have_the_planted_values(files):
    run = read_run(scored(files).path)
    exact = run.metrics[run.metrics["metric"] == "exact_match"]
    assert exact["value"].tolist() == [80.0, 40.0]
    compared = run.comparisons[run.comparisons["metric"] == "exact_match"].iloc[0]
    assert (compared["loss"], compared["against_loss"]) == ("ours", "smmd")
    assert (compared["difference"], compared["b"], compared["c"]) == (-40.0, 1, 3)
    assert compared["p"] == pytest.approx(0.625)  # 2 * (1 + 4) / 2^4


def test_labels_stand_in_the_order_of_the_command_also_ce_and_base(tmp_path, right):
    file = json_lines(tmp_path / "a.jsonl", right)
    labels = ["smmd", "base", "zeta", "ce"]
    outcome = scored([file] * 4, labels=labels)
    run = read_run(outcome.path)
    assert run.cells["loss"].tolist() == labels
    assert run.comparisons["against_loss"].unique().tolist() == ["smmd"]
    write_some_reports(outcome.path, ["arithmetic_table"])
    table = pd.read_csv(outcome.path / "reports" / "tables" / "arithmetic_table.csv")
    assert table["Loss"].tolist() == ["SMMD", "untuned", "zeta", "CE"]


@pytest.mark.parametrize("labels", [["ce", "smmd"], ["first run", "küche [2]"]])
def test_every_report_works_or_says_why_not(files, labels, caplog):
    outcome = scored(files, labels=labels)
    with caplog.at_level(logging.WARNING), coarse_figures():
        write_reports(outcome.path)
    assert not caplog.records
    page = (outcome.path / "reports" / "index.html").read_text()
    for reason in ("no cell has digit probes", "no cell has a training log"):
        assert reason in page
    assert (outcome.path / "reports" / "figures" / "overview.png").exists()


def test_the_same_again_does_nothing_also_where_a_file_was_moved_or_sorted(files):
    first = scored(files)
    before = contents(first.path)
    assert first.worked
    assert not scored(files).worked
    lines = files[1].read_text().splitlines()
    moved = json_lines(files[1].with_name("moved.jsonl"), lines[::-1])
    assert not scored([files[0], moved], labels=["smmd", "ours"]).worked
    assert contents(first.path) == before


def test_a_changed_file_is_scored_again_and_alone(files, right):
    outcome = scored(files)
    before = contents(outcome.path)
    json_lines(files[1], right)
    assert scored(files).worked
    run = read_run(outcome.path)
    assert run.metrics[run.metrics["metric"] == "exact_match"]["value"].tolist() == [80.0, 100.0]
    assert run.comparisons["difference"].iloc[0] == 20.0
    smmd, ours = run.cells["address"]
    changed = {name for name, at in contents(outcome.path).items() if before.get(name) != at}
    assert not any(smmd in name for name in changed)
    assert f"cells/{ours}/comparison.json" in changed


@pytest.mark.parametrize(
    "name", ["metrics.json", "scores.parquet", "completions.parquet", "cell.json"]
)
def test_what_a_killed_command_left_out_is_made_again(files, name):
    outcome = scored(files)
    whole = read_run(outcome.path).metrics
    for path in outcome.path.glob(f"cells/*/{name}"):
        path.unlink()
    scored(files)
    pd.testing.assert_frame_equal(read_run(outcome.path).metrics, whole)
    assert not scored(files).worked


def test_the_default_folder_is_named_by_task_labels_and_contents(files, right, monkeypatch):
    monkeypatch.chdir(files[0].parent)
    first = scored(files, out=None)
    assert str(first.path).startswith("runs/score_arithmetic-level-easy_smmd_ours_")
    assert scored(files, out=None).path == first.path
    json_lines(files[1], right)
    assert scored(files, out=None).path != first.path


def test_a_folder_of_something_else_is_refused_and_left_as_it_is(files, tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "notes.txt").touch()
    with pytest.raises(UserError, match=r"not empty and holds no run \(notes.txt\)"):
        scored(files, out=folder)
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]
    out = scored(files).path
    before = contents(out)
    with pytest.raises(UserError, match="belongs to another command"):
        scored(files, labels=["a", "b"])
    (out / "manifest.json").write_text(json.dumps({"name": "x", "command": "train-eval"}))
    with pytest.raises(UserError, match=r"belongs to another command \(train-eval\)"):
        scored(files)
    assert contents(out).keys() == before.keys()


def test_an_experiment_does_not_move_into_the_folder(files):
    out = scored(files).path
    with pytest.raises(UserError, match="belongs to another experiment"):
        RunDirectory(out).require_own([Experiment((TASK,), ("ce",))], extend=False)


class Grumpy(Arithmetic):
    """A task whose parser cannot bear the word "boom", and whose uids are integers."""

    name = "grumpy"

    def examples(self, split, seed, limit=None):
        return [Example(str(at + 5), "?", "1", Answer(Fraction(1))) for at in range(2)]

    def parse(self, completion):
        if completion == "boom":
            raise RuntimeError("no such number")
        return super().parse(completion)


def test_a_task_that_fails_is_recorded_and_the_other_files_go_on(tmp_path, monkeypatch):
    monkeypatch.setitem(registry._from_files["tasks"], "grumpy", Grumpy)
    registry.load_task.cache_clear()
    rows = [{"id": "6", "output": "1"}, {"id": "5", "output": "2"}]
    good = json_lines(tmp_path / "good.jsonl", rows)
    bad = json_lines(tmp_path / "bad.jsonl", [rows[0], {"id": "5", "output": "boom"}])
    outcome = score_predictions("grumpy", [good, bad], out=tmp_path / "out")
    assert outcome.failed == {"bad": "RuntimeError: no such number"}
    run = read_run(outcome.path)
    assert run.cells["status"].tolist() == ["done", "failed"]
    assert run.completions["completion"].tolist() == ["2", "1"]  # by uid
    registry.load_task.cache_clear()


@pytest.mark.parametrize(
    ("files", "labels"),
    [
        (["a/ours.jsonl"], ["ours"]),
        (["a/samples_gsm8k_2026-11-20T10-31-09.123456.jsonl"], ["gsm8k"]),
        (["a/samples_x_2026-11-20T10-31-09.1.jsonl", "b/samples_x_2026-11-21T09-00-00.2.jsonl"],
         ["a", "b"]),
        (["a/one.jsonl", "b/two.jsonl"], ["one", "two"]),
        (["a/samples_mine.jsonl"], ["samples_mine"]),
    ],
)  # fmt: skip
def test_a_file_without_a_label_is_called_by_its_name_or_what_lm_eval_means(
    tmp_path, right, files, labels
):
    paths = [tmp_path / file for file in files]
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        json_lines(path, right)
    assert scored(paths, out=tmp_path / "out").path == tmp_path / "out"
    assert read_run(tmp_path / "out").cells["loss"].tolist() == labels


def test_one_file_alone_is_compared_with_nothing_and_its_data_have_a_source(files):
    outcome = scored(files[:1])
    run = read_run(outcome.path)
    made = load("reports", "arithmetic_table").build(run)
    assert not {"p (Holm)", "Δ to CE"} & {*made.table.columns}
    assert "CE" not in " ".join([made.caption, *made.notes])
    (data,) = run.manifest["data"].values()
    assert data["identity"]["test"] == dict(load_task(TASK).identity("test", 0))


def test_charts_of_the_official_folder_are_no_data_of_unknown_source(tmp_path, monkeypatch):
    monkeypatch.setenv("SMMD_BENCH_DATA", str(DATA / "chartqa"))
    task = "chartqa[source=official]"
    rows = [
        {"uid": e.uid, "completion": e.target} for e in load_task(task).examples("test", 0, None)
    ]
    score_predictions(task, [json_lines(tmp_path / "a.jsonl", rows)], out=tmp_path / "out")
    artefact = load("reports", "chart_table").build(read_run(tmp_path / "out"))
    said = " ".join([artefact.caption, *artefact.notes])
    assert "No published values for" in said
    assert "unknown source" not in said
