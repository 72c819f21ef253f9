"""Measurements with real processes."""

import os
import shutil
import signal
from dataclasses import replace
from typing import ClassVar

import pandas as pd
import pytest

import smmd_bench as sb
from smmd_bench.errors import UserError
from smmd_bench.overhead import measure as module
from smmd_bench.overhead.measure import measure, missing_repeats, read_frames
from smmd_bench.overhead.process import RowProcess
from smmd_bench.overhead.ratios import overhead_frame
from smmd_bench.overhead.settings import STOCK
from smmd_bench.storage.files import write_json
from tests.overhead.conftest import recorded, silent, tiny_settings

pytestmark = pytest.mark.engine

ROWS = (STOCK, "ce", "smmd")
TWO = {"ce": 1, "smmd": 1}


def test_every_row_has_every_step_with_both_clocks(measured_folder):
    steps = read_frames(measured_folder)["steps"]
    assert list(zip(steps["row"], steps["step"], strict=True)) == [
        (row, step) for row in ROWS for step in (1, 2, 3, 4)
    ]
    assert (steps[["wall_seconds", "cpu_seconds"]] > 0).all(axis=None)
    assert steps["dropped"].tolist() == [True, False, False, False] * 3


def test_every_row_says_its_memory_and_on_what_it_ran(measured_folder):
    runs = read_frames(measured_folder)["runs"]
    assert tuple(runs["row"]) == ROWS
    assert (runs["peak_bytes"] > 10**8).all()  # python and torch alone are that
    assert runs["threads"].tolist() == [1, 1, 1]
    assert runs["device"].notna().all()
    assert runs["error"].isna().all()


def test_a_measurement_is_a_run_without_cells(measured_folder):
    run = sb.read_run(measured_folder)
    assert run.manifest["overhead"]["losses"] == TWO
    assert {"command", "versions", "hardware"} <= set(run.manifest)
    assert run.cells.empty
    assert run.metrics.empty


def test_what_is_complete_is_not_measured_again(measured_folder):
    before = (measured_folder / "steps.parquet").stat().st_mtime_ns
    calls, progress = recorded()
    assert not measure(tiny_settings(losses=TWO), measured_folder, progress)
    assert calls == []
    assert (measured_folder / "steps.parquet").stat().st_mtime_ns == before


def test_another_measurement_does_not_get_the_folder(measured_folder):
    with pytest.raises(UserError, match=r"belongs to another .* \(overhead_tiny_cpu_smmd_"):
        measure(tiny_settings(losses=TWO, seed=1), measured_folder, silent)


def test_a_folder_with_other_things_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(UserError, match=r"holds no run \(thesis.tex\)"):
        measure(tiny_settings(), tmp_path, silent)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


class Deadly(RowProcess):
    """A process of which one is killed in the midst of the second step."""

    def step(self):
        if self.row == "ce" and len(self.steps) == 1 and self.failure is None:
            os.kill(self.worker.process.pid, signal.SIGKILL)
            self.worker.process.wait()
        super().step()


class Noted:
    """Notes who steps, in place of a process."""

    turns: ClassVar[list[str]] = []

    def __init__(self, settings, row, *_):
        self.row, self.failure, self.facts, self.steps = row, None, {"threads": 1}, []

    def step(self):
        self.turns.append(self.row)
        self.steps.append((1.0, 1.0))

    def hear(self): ...
    def prepare(self): ...
    def close(self): ...


def turns_of(settings, folder, monkeypatch):
    monkeypatch.setattr(module, "RowProcess", Noted)
    monkeypatch.setattr(Noted, "turns", [])
    measure(settings, folder, silent)
    return Noted.turns


def test_a_killed_row_is_reported_the_others_finish_and_its_repeat_alone_is_done_again(
    measured_folder, tmp_path, monkeypatch
):
    """In the second repeat; the first one was finished before, and stays as it is."""
    settings = tiny_settings(losses=TWO, repeats=2)
    folder = shutil.copytree(measured_folder, tmp_path / "run")
    manifest = sb.read_run(folder).manifest
    write_json(folder / "manifest.json", {**manifest, "overhead": settings.to_dict()})
    monkeypatch.setattr(module, "RowProcess", Deadly)
    calls, progress = recorded()
    assert measure(settings, folder, progress)
    frames = read_frames(folder)
    failed = frames["runs"].dropna(subset="error")
    assert failed[["row", "repeat"]].to_numpy().tolist() == [["ce", 1]]
    assert failed["error"].iloc[0].startswith("the process was killed by SIGKILL (out of memory?)")
    counts = frames["steps"].query("repeat == 1").groupby("row").size().to_dict()
    assert counts == {STOCK: 4, "smmd": 4}
    assert missing_repeats(settings, folder) == [1]

    assert turns_of(settings, folder, monkeypatch)
    assert missing_repeats(settings, folder) == []
    steps = read_frames(folder)["steps"]
    assert steps.groupby(["row", "repeat"]).size().eq(4).all()
    first = read_frames(measured_folder)["steps"]
    pd.testing.assert_frame_equal(steps.query("repeat == 0"), first)
    assert {label for label, _, _ in calls} == {"repeat 2 of 2"}


class Hopeless(Noted):
    """A process that cannot even start."""

    def hear(self):
        self.failure = "no memory"

    def step(self): ...


def test_where_all_fail_there_are_reasons_and_no_steps(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "RowProcess", Hopeless)
    for _ in range(2):  # the same command tries again
        assert measure(tiny_settings(repeats=2), tmp_path, silent)
        frames = read_frames(tmp_path)
        assert frames["steps"].empty
        assert frames["runs"]["error"].tolist() == ["no memory"] * 4
    assert overhead_frame(frames["steps"], frames["runs"], (STOCK, "ce"))["repeats"].sum() == 0


def test_the_order_of_turns_changes_from_step_to_step_and_follows_from_the_seed(
    tmp_path, monkeypatch
):
    settings = tiny_settings(losses=TWO, steps=12)
    found = [
        turns_of(replace(settings, seed=seed), tmp_path / name, monkeypatch)
        for name, seed in (("a", 0), ("b", 0), ("c", 1))
    ]
    rounds = [tuple(found[0][at : at + 3]) for at in range(0, 36, 3)]
    assert all(sorted(turn) == sorted(ROWS) for turn in rounds)
    assert len(set(rounds)) > 2
    assert found[0] == found[1] != found[2]


def test_rows_can_run_one_after_the_other_in_an_order_that_changes(tmp_path, monkeypatch):
    settings = tiny_settings(losses=TWO, interleave="runs", repeats=6)
    turns = turns_of(settings, tmp_path / "out", monkeypatch)
    rows = [tuple(turns[at : at + 12 : 4]) for at in range(0, 72, 12)]
    assert turns == [row for order in rows for row in order for _ in range(4)]
    assert all(sorted(order) == sorted(ROWS) for order in rows)
    assert len(set(rows)) > 1
