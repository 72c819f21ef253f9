"""All reports of a run: in one process or in several, again, and beside the files of people."""

from __future__ import annotations

import json
import os
import shutil

import pytest

from smmd_bench.plugin_system import registry
from smmd_bench.publishing import processes
from smmd_bench.publishing.write_reports import write_reports, write_some_reports
from smmd_bench.storage.files import read_json, write_json
from tests.publishing.plugin_files import write_plugin
from tests.runs import write_run

CELLS = 'return Artefact("A caption.", pd.DataFrame({"Cells": [str(len(run.cells))]}))'
PROCESS = 'import os\nreturn Artefact("A caption.", pd.DataFrame({"Process": [str(os.getpid())]}))'
BROKEN = 'raise ValueError("no such luck")'
SOME = ("arithmetic_table", "error_histogram", "math_table", "overview")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("large") / "run"
    write_run(folder, losses=("ce", "smmd"), seeds=(0,), n=40, steps=40, resamples=20)
    return folder


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    monkeypatch.setattr(processes, "_cores", lambda: 2)
    monkeypatch.setattr(processes, "SEVERAL", 1)
    forget_plugins(monkeypatch)


def forget_plugins(monkeypatch):
    monkeypatch.setattr(registry, "_from_files", {group: {} for group in registry.GROUPS})
    monkeypatch.setattr(registry, "_files", [])


def only(monkeypatch, *names):
    """Of the installed reports those with these names."""
    every = registry.points

    def some(group):
        return {k: v for k, v in every(group).items() if group != "reports" or k in names}

    monkeypatch.setattr(registry, "points", some)


def contents(folder):
    files = (file for file in (folder / "reports").rglob("*") if file.is_file())
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def test_processes_and_some_reports_change_no_byte(written, tmp_path, monkeypatch):
    only(monkeypatch, *SOME)
    registry.load_plugin_file(write_plugin(tmp_path / "plugin.py", cells=CELLS, broken=BROKEN))
    alone = shutil.copytree(written, tmp_path / "alone" / "run")
    with monkeypatch.context() as patch:
        patch.setattr(processes, "_cores", lambda: 1)
        in_order = write_reports(alone)
    expected = contents(alone)
    write_some_reports(alone, ["arithmetic_table", "error_histogram"])
    assert contents(alone) == expected
    monkeypatch.chdir(tmp_path)
    elsewhere = shutil.copytree(written, tmp_path / "elsewhere" / "run").relative_to(tmp_path)
    heard: list[tuple[str, int, int]] = []
    paths = write_reports(elsewhere, lambda *said: heard.append(said))
    assert [path.relative_to(elsewhere) for path in paths] == [
        path.relative_to(alone) for path in in_order
    ]
    found = contents(elsewhere)
    failed = json.loads(found.pop("reports/failed.json"))
    assert failed["broken"]["error"] == "ValueError: no such luck"
    assert "no such luck" in failed["broken"]["traceback"]
    del expected["reports/failed.json"]  # its tracebacks may name other frames
    assert found == expected
    assert "reports/tables/cells.csv" in found
    assert heard == [("make reports", done, 6) for done in range(7)]


@pytest.fixture
def makers(written, tmp_path, monkeypatch):
    """`makers(first=..., last=...)`: the processes that made two reports with that code."""

    def make(**bodies):
        only(monkeypatch)
        plugin = write_plugin(tmp_path / "plugin.py", **{k: v + PROCESS for k, v in bodies.items()})
        registry.load_plugin_file(plugin)
        write_reports(written)
        files = [written / "reports" / "tables" / f"{name}.csv" for name in bodies]
        return [int(file.read_text().split()[1]) for file in files]

    return make


def until_both_began(folder):
    """Code of a report: wait until another one waits in the same folder, a minute at most."""
    return (
        f"import os, pathlib, time\nfolder = pathlib.Path({str(folder)!r})\n"
        "folder.mkdir(exist_ok=True)\n(folder / self.name).touch()\nend = time.time() + 60\n"
        "while len([*folder.iterdir()]) < 2 and time.time() < end:\n    time.sleep(0.01)\n"
    )


def test_two_cores_make_two_reports_at_once(makers, tmp_path):
    wait = until_both_began(tmp_path / "began")
    first, last = makers(first=wait, last=wait)
    assert first == os.getpid() != last


def test_this_process_makes_what_a_killed_one_left(makers, tmp_path):
    wait = until_both_began(tmp_path / "began")
    killed = f"os._exit(1) if os.getpid() != {os.getpid()} else None\n"
    assert makers(first=wait, last=wait + killed) == [os.getpid()] * 2


def cannot_start(_):
    raise OSError("no semaphores")


@pytest.mark.parametrize(
    ("name", "value"), [("_cores", lambda: 1), ("SEVERAL", 3), ("_processes", cannot_start)]
)
def test_else_this_process_makes_all(makers, monkeypatch, name, value):
    monkeypatch.setattr(processes, name, value)
    assert makers(first="", last="") == [os.getpid()] * 2


def test_another_content_of_the_run_is_read_anew(written, tmp_path, monkeypatch):
    only(monkeypatch, "arithmetic_table", "scale_errors")
    folder = shutil.copytree(written, tmp_path / "run")
    table = folder / "reports" / "tables" / "arithmetic_table.csv"
    for value in (11.1, 99.9):
        for file in folder.glob("cells/*/metrics.json"):
            content = read_json(file) or {}
            content["metrics"]["exact_match"]["value"] = value
            write_json(file, content)
        write_reports(folder)
        assert str(value) in table.read_text()


def test_files_of_people_stay_beside_those_of_the_reports(written, tmp_path, monkeypatch):
    folder = shutil.copytree(written, tmp_path / "run")
    only(monkeypatch, "arithmetic_table", "math_table")
    registry.load_plugin_file(write_plugin(tmp_path / "plugin.py", cells=CELLS))
    write_reports(folder)
    tables = folder / "reports" / "tables"
    names = ("notes.md", "arithmetic_table.notes.md", "v1.final.csv", "../figures/for the talk.png")
    for name in names:
        (tables / name).parent.mkdir(exist_ok=True)
        (tables / name).write_text("by hand")
    gone = [*tables.glob("cells.*")]
    stale = tables / "math_table.csv"  # skipped here; a killed command may have left it
    stale.write_text("old")
    forget_plugins(monkeypatch)
    write_reports(folder)
    assert gone
    assert not any(file.exists() for file in [*gone, stale])
    assert [(tables / name).read_text() for name in names] == ["by hand"] * 4
    assert (tables / "arithmetic_table.csv").is_file()
