"""The run folder: what is in it, what the reports make of it, and what a second command does."""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import pytest

from smmd_bench.contracts import Answer, ExactMatch, Example, Metric, Modality, Split
from smmd_bench.errors import UserError
from smmd_bench.experiment.experiment import Experiment
from smmd_bench.plugin_system import registry
from smmd_bench.publishing.write_reports import write_reports
from smmd_bench.results.frames import read_run
from smmd_bench.run.predictions import score_predictions
from smmd_bench.run.run_directory import Outcome, RunDirectory

from .conftest import COUNT, TASK, json_lines


def wrong(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "completion": str(Fraction(row["completion"]) + 1)}


@pytest.fixture
def files(tmp_path: Path, right: list[dict[str, Any]]) -> list[Path]:
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


def test_the_layout_is_that_of_a_run(files: list[Path]) -> None:
    outcome = scored(files, model="Qwen/Qwen2.5-0.5B")
    cells = read_run(outcome.path).cells
    assert cells["status"].tolist() == ["done", "done"]
    assert cells["loss"].tolist() == ["smmd", "ours"]
    assert cells["model"].tolist() == ["Qwen/Qwen2.5-0.5B"] * 2
    assert cells["params"].isna().all()
    for address, name in zip(cells["address"], ("smmd", "ours"), strict=True):
        left = {path.name for path in (outcome.path / "cells" / address).iterdir()}
        assert left == {"cell.json", "completions.parquet", "scores.parquet", "metrics.json"} | (
            {"comparison.json"} if name == "ours" else set()
        )


def test_metrics_and_comparisons_have_the_planted_values(files: list[Path]) -> None:
    run = read_run(scored(files).path)
    exact = run.metrics[run.metrics["metric"] == "exact_match"]
    assert exact["value"].tolist() == [80.0, 40.0]
    compared = run.comparisons[run.comparisons["metric"] == "exact_match"].iloc[0]
    assert (compared["loss"], compared["against_loss"]) == ("ours", "smmd")
    assert (compared["difference"], compared["b"], compared["c"]) == (-40.0, 1, 3)
    assert compared["p"] == pytest.approx(0.625)  # 2 * (1 + 4) / 2^4


def test_labels_stand_in_the_order_of_the_command_also_ce_and_base(
    tmp_path: Path, right: list[dict[str, Any]]
) -> None:
    file = json_lines(tmp_path / "a.jsonl", right)
    labels = ["smmd", "base", "zeta", "ce"]
    outcome = scored([file] * 4, labels=labels)
    run = read_run(outcome.path)
    assert run.cells["loss"].tolist() == labels
    assert run.comparisons["against_loss"].unique().tolist() == ["smmd"]
    write_reports(outcome.path)
    table = pd.read_csv(outcome.path / "reports" / "tables" / "arithmetic_table.csv")
    assert table["Loss"].tolist() == ["SMMD", "untuned", "ZETA", "CE"]


@pytest.mark.parametrize("labels", [["ce", "smmd"], ["first run", "küche [2]"]])
def test_every_report_works_or_says_why_not(
    files: list[Path], labels: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    outcome = scored(files, labels=labels)
    with caplog.at_level(logging.WARNING):
        write_reports(outcome.path)
    assert not caplog.records
    page = (outcome.path / "reports" / "index.html").read_text()
    for reason in ("no cell has digit probes", "no cell has a training log"):
        assert reason in page
    assert (outcome.path / "reports" / "figures" / "arithmetic_operations.png").exists()


def test_the_manifest_says_what_was_read(files: list[Path]) -> None:
    manifest = read_run(scored(files).path).manifest
    assert manifest["predictions"]["labels"] == ["smmd", "ours"]
    assert manifest["files"]["ours"]["matched_by"] == "uid"
    assert manifest["files"]["ours"]["path"] == str(files[1])
    assert manifest["data"][TASK]["sizes"] == {"test": COUNT}


def test_the_same_again_does_nothing(files: list[Path]) -> None:
    first = scored(files)
    before = contents(first.path)
    assert first.worked
    assert not scored(files).worked
    assert contents(first.path) == before


def test_a_file_that_was_moved_or_sorted_is_the_same_file(
    files: list[Path], right: list[dict[str, Any]]
) -> None:
    scored(files)
    lines = files[1].read_text().splitlines()
    moved = json_lines(files[1].with_name("moved.jsonl"), lines[::-1])
    assert not scored([files[0], moved], labels=["smmd", "ours"]).worked


def test_a_changed_file_is_scored_again_and_alone(
    files: list[Path], right: list[dict[str, Any]]
) -> None:
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
def test_what_a_killed_command_left_out_is_made_again(files: list[Path], name: str) -> None:
    outcome = scored(files)
    whole = read_run(outcome.path).metrics
    for path in outcome.path.glob(f"cells/*/{name}"):
        path.unlink()
    scored(files)
    pd.testing.assert_frame_equal(read_run(outcome.path).metrics, whole)
    assert not scored(files).worked


def test_the_default_folder_is_named_by_task_labels_and_contents(
    files: list[Path], right: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files[0].parent)
    first = scored(files, out=None)
    assert str(first.path).startswith("runs/score_arithmetic-level-easy_smmd_ours_")
    assert scored(files, out=None).path == first.path
    json_lines(files[1], right)
    assert scored(files, out=None).path != first.path


def test_a_folder_of_something_else_is_refused_and_left_as_it_is(
    files: list[Path], tmp_path: Path
) -> None:
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


def test_an_experiment_does_not_move_into_the_folder(files: list[Path]) -> None:
    out = scored(files).path
    with pytest.raises(UserError, match="belongs to another experiment"):
        RunDirectory(out).require_own([Experiment((TASK,), ("ce",))], extend=False)


@dataclass(frozen=True)
class Grumpy:
    """A task whose parser cannot bear the word "boom"."""

    name: ClassVar[str] = "grumpy"
    version: ClassVar[int] = 1
    modality: ClassVar[Modality] = Modality.TEXT
    max_new_tokens: ClassVar[int] = 8
    paper_sizes: ClassVar[Mapping[Split, int]] = {"train": 2, "validation": 2, "test": 2}

    def examples(self, split: Split, seed: int, limit: int | None = None) -> Sequence[Example]:
        return [Example(str(at + 5), "?", "1", Answer(Fraction(1))) for at in range(2)]

    def identity(self, split: Split, seed: int) -> Mapping[str, Any]:
        return {}

    def parse(self, completion: str) -> Answer | None:
        if completion == "boom":
            raise RuntimeError("no such number")
        return Answer(Fraction(completion))

    def metrics(self) -> Sequence[Metric]:
        return (ExactMatch(),)


def test_a_task_that_fails_is_recorded_and_the_other_files_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(registry._from_files["tasks"], "grumpy", Grumpy)
    registry.load_task.cache_clear()
    rows = [{"id": "6", "output": "1"}, {"id": "5", "output": "2"}]
    good = json_lines(tmp_path / "good.jsonl", rows)
    bad = json_lines(tmp_path / "bad.jsonl", [rows[0], {"id": "5", "output": "boom"}])
    outcome = score_predictions("grumpy", [good, bad], out=tmp_path / "out")
    assert outcome.failed == {"bad": "RuntimeError: no such number"}
    run = read_run(outcome.path)
    assert run.cells["status"].tolist() == ["done", "failed"]
    # The uids are integers: they are no positions.
    assert run.completions["completion"].tolist() == ["2", "1"]
    registry.load_task.cache_clear()
