"""A large run's reports, made in several processes."""

from __future__ import annotations

import json
import os
import shutil
import warnings
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from smmd_bench.plugin_system import registry
from smmd_bench.publishing import processes
from smmd_bench.publishing.write_reports import write_reports
from tests.publishing.plugin_files import write_plugin
from tests.runs import write_run

OF_A_FILE = 'return Artefact("A caption.", pd.DataFrame({"Cells": [str(len(run.cells))]}))'
PROCESS = """
import os
return Artefact("A caption.", pd.DataFrame({"Process": [str(os.getpid())]}))
"""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("large") / "run"
    write_run(folder, losses=("ce", "smmd"), seeds=(0,), n=40, steps=40, resamples=20)
    return folder


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_cores", lambda: 2)
    monkeypatch.setattr(registry, "_from_files", {group: {} for group in registry.GROUPS})
    monkeypatch.setattr(registry, "_files", [])


def only(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Of the installed reports those with these names, and as few as there are in processes."""
    every = registry.points

    def some(group: registry.Group) -> dict[str, EntryPoint]:
        return {k: v for k, v in every(group).items() if group != "reports" or k in names}

    monkeypatch.setattr(registry, "points", some)
    monkeypatch.setattr(processes, "SEVERAL", 1)


def contents(folder: Path) -> dict[str, bytes]:
    files = (file for file in (folder / "reports").rglob("*") if file.is_file())
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def test_processes_change_no_byte(
    written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = 'raise ValueError("no such luck")'
    registry.load_plugin_file(
        write_plugin(tmp_path / "plugin.py", of_a_file=OF_A_FILE, broken=broken)
    )
    alone = shutil.copytree(written, tmp_path / "alone" / "run")
    in_order = write_reports(alone)
    monkeypatch.setattr(processes, "LARGE", 1)
    monkeypatch.chdir(tmp_path)
    elsewhere = shutil.copytree(written, tmp_path / "elsewhere" / "run").relative_to(tmp_path)
    heard: list[tuple[str, int, int]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        paths = write_reports(elsewhere, lambda *said: heard.append(said))
    assert [path.relative_to(elsewhere) for path in paths] == [
        path.relative_to(alone) for path in in_order
    ]
    found, expected = contents(elsewhere), contents(alone)
    failed = json.loads(found.pop("reports/failed.json"))
    assert failed["broken"]["error"] == "ValueError: no such luck"
    assert "no such luck" in failed["broken"]["traceback"]
    del expected["reports/failed.json"]  # its tracebacks may name other frames
    assert found == expected
    assert "reports/tables/of_a_file.csv" in found
    whats, done, totals = zip(*heard, strict=True)
    assert (set(whats), len(set(totals))) == ({"make reports"}, 1)
    assert done == (*range(totals[0] + 1),)


def test_small_runs_stay_in_this_process_and_large_ones_do_not(
    written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.load_plugin_file(write_plugin(tmp_path / "plugin.py", process=PROCESS))
    only(monkeypatch)

    def process_of_a_report() -> int:
        write_reports(written)
        return int((written / "reports" / "tables" / "process.csv").read_text().split()[1])

    assert process_of_a_report() == os.getpid()
    monkeypatch.setattr(processes, "LARGE", 1)
    assert process_of_a_report() != os.getpid()


@pytest.mark.parametrize("processes_start", [True, False])
def test_another_content_of_the_run_is_read_anew(
    written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, processes_start: bool
) -> None:
    monkeypatch.setattr(processes, "LARGE", 1)
    only(monkeypatch, "arithmetic_table")
    if not processes_start:  # as joblib has it where there are no semaphores
        monkeypatch.setattr("joblib._parallel_backends.mp", None)
    folder = shutil.copytree(written, tmp_path / "run")
    write_reports(folder)
    first = (folder / "reports" / "tables" / "arithmetic_table.csv").read_text()
    metrics = next(
        file
        for file in folder.glob("cells/*/metrics.json")
        if json.loads((file.parent / "cell.json").read_text())["loss"] == "smmd"
    )
    content = json.loads(metrics.read_text())
    content["metrics"]["exact_match"]["value"] = 99.9
    metrics.write_text(json.dumps(content))
    write_reports(folder)
    second = (folder / "reports" / "tables" / "arithmetic_table.csv").read_text()
    assert "99.9" in second
    assert "99.9" not in first


def test_where_a_process_is_killed_the_rest_is_made_in_this_one(
    written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = f"os._exit(1) if os.getpid() != {os.getpid()} else None"
    process = PROCESS.replace("import os", f"import os; {killed}")
    registry.load_plugin_file(
        write_plugin(tmp_path / "plugin.py", process=process, of_a_file=OF_A_FILE)
    )
    monkeypatch.setattr(processes, "LARGE", 1)
    only(monkeypatch, "arithmetic_table")
    write_reports(written)
    reports = written / "reports"
    assert (reports / "tables" / "process.csv").read_text().split()[1] == str(os.getpid())
    assert {"arithmetic_table.csv", "of_a_file.csv"} <= {p.name for p in reports.glob("tables/*")}
    assert (reports / "index.html").is_file()


def test_files_of_people_stay_beside_those_of_the_reports(
    written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shutil.copytree(written, tmp_path / "run")
    only(monkeypatch, "arithmetic_table", "math_table")
    registry.load_plugin_file(write_plugin(tmp_path / "plugin.py", of_a_file=OF_A_FILE))
    write_reports(folder)
    tables = folder / "reports" / "tables"
    theirs = [tables / "notes.md", tables / "arithmetic_table.notes.md", tables / "v1.final.csv"]
    theirs.append(folder / "reports" / "figures" / "for the talk.png")
    for file in theirs:
        file.parent.mkdir(exist_ok=True)
        file.write_text("by hand")
    gone = [*tables.glob("of_a_file.*")]
    stale = tables / "math_table.csv"  # skipped here; as a publication that was killed left it
    stale.write_text("old")
    monkeypatch.setattr(registry, "_from_files", {group: {} for group in registry.GROUPS})
    monkeypatch.setattr(registry, "_files", [])
    write_reports(folder)
    assert gone
    assert not any(file.exists() for file in [*gone, stale])
    assert [file.read_text() for file in theirs] == ["by hand"] * 4
    assert (tables / "arithmetic_table.csv").is_file()
