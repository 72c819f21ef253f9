"""The checks of a report, on runs without a cell, without results, of one cell, and a full one.

They are parts of the specimen: two small real runs (`scripts/make_specimen.sh`), without weights.
"""

import io
import tarfile
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from ..contracts import Artefact, Report
from ..publishing import tables
from ..publishing.latex import to_latex
from ..publishing.style import figure_style
from ..results.frames import RunFrames, read_run
from ..storage.files import read_json, write_json
from .checks import Checks, UncheckedError, ViolationError, fail, require, say


@dataclass(frozen=True)
class Specimen:
    """The runs that reports are tried on, unpacked into a folder when a check first needs one.

    own: a user's run, to be tried as well.
    """

    folder: Path
    own: Path | None = None

    @cached_property
    def run(self) -> Path:
        """All tasks, several losses and seeds, ablations, and what lm-eval found."""
        packed = files("smmd_bench.conformance") / "specimen.tar.xz"
        with as_file(packed) as file, tarfile.open(file) as archive:
            archive.extractall(self.folder, filter="data")
        return self.folder / "run"

    @cached_property
    def empty(self) -> dict[str, Path]:
        """Without a cell; with cells that have no results."""
        return {
            "without a cell": self._part("empty", ()),
            "without results": self._part("pending", None),
        }

    @cached_property
    def one_cell(self) -> dict[str, Path]:
        """A run of one cell for each task."""
        cells = self._manifest["cells"]
        first = {c["task"]: c["address"] for c in cells[::-1] if c["loss"] == "ce"}
        return {
            f"of one {task} cell": self._part(f"one-{at}", {address})
            for at, (task, address) in enumerate(first.items())
        }

    @cached_property
    def full(self) -> dict[str, Path]:
        """The whole run, and a measurement of overhead."""
        found = {"full": self.run, "of `smmd-bench overhead`": self.run.with_name("overhead")}
        return {**found, str(self.own): self.own} if self.own else found

    @property
    def _manifest(self) -> dict[str, Any]:
        return read_json(self.run / "manifest.json") or {}

    def _part(self, name: str, kept: Collection[str] | None) -> Path:
        """The run with the cells of these addresses; None: with all, and without any result."""
        folder, manifest = self.folder / name, self._manifest
        cells = [c for c in manifest["cells"] if kept is None or c["address"] in kept]
        write_json(folder / "manifest.json", {**manifest, "cells": cells})
        for made in () if kept is None else filter(Path.is_dir, self.run.iterdir()):
            (folder / made.name).symlink_to(made)
        return folder


@dataclass(frozen=True)
class Tried:
    """A report and the runs that it is tried on."""

    report: Report
    runs: Specimen


REPORT_CHECKS = Checks()


@REPORT_CHECKS.add("contract")
def _contract(tried: Tried) -> str:
    report = tried.report
    require(isinstance(report, Report), "it lacks an attribute or method of Report")
    require(bool(report.title.strip()), "its title is empty")
    return f"{report.title} ({report.paper})" if report.paper else report.title


def _try_each(report: Report, runs: dict[str, Path]) -> str:
    """It skips with a reason, or can be built, and raises nothing."""
    made = [_build(report, read_run(folder), what) for what, folder in runs.items()]
    skipped = made.count(None)
    return f"{skipped} skipped, {len(runs) - skipped} built"


REPORT_CHECKS["an empty run"] = lambda tried: _try_each(tried.report, tried.runs.empty)
REPORT_CHECKS["a run of one cell"] = lambda tried: _try_each(tried.report, tried.runs.one_cell)


@REPORT_CHECKS.add("a full run")
def _full(tried: Tried) -> str:
    """The same, twice over; and at least one is not skipped."""
    report = tried.report
    parts: list[str] = []
    reasons: list[str] = []
    for what, folder in tried.runs.full.items():
        run = read_run(folder)
        before = run.metrics.copy(), run.cells.copy()
        first = _build(report, run, what)
        if first is None:
            reasons.append(f"{what}: {report.skip(run)}")
            continue
        require(
            before[0].equals(run.metrics) and before[1].equals(run.cells),
            "it changes a frame of the run in place, which other reports read: work on a copy",
        )
        with figure_style():
            again = report.build(read_run(folder))
        made = [name for name in ("table", "figure", "data") if getattr(first, name) is not None]
        for name in ("table", "data"):
            one, other = getattr(first, name), getattr(again, name)
            same = one is other is None or tables.to_csv(one) == tables.to_csv(other)
            require(same, f"the {name} of a run {what} changes when it is made again")
        require(first.caption == again.caption, "the caption changes from call to call")
        parts.append(f"{what}: {', '.join(made)}")
    if not parts:
        raise UncheckedError(
            f"it skips all of them ({'; '.join(reasons)}): give a run of yours with --run"
        )
    return f"{'; '.join(parts)}; the same when made again"


def _build(report: Report, run: RunFrames, what: str) -> Artefact | None:
    """What it makes of a run, rendered in every format; None: it skips the run."""
    try:
        reason = report.skip(run)
        if reason is not None:
            require(
                isinstance(reason, str) and bool(reason.strip()),
                f"skip gives {reason!r} for a run {what}: a reason, or None",
            )
            return None
        with figure_style():
            artefact = report.build(run)
    except ViolationError:
        raise
    except Exception as error:
        fail(f"a run {what}: {say(error)}")
    require(isinstance(artefact, Artefact), f"build returns a {type(artefact).__name__}")
    require(bool(artefact.caption.strip()), f"the caption of a run {what} is empty")
    require(
        artefact.table is not None or artefact.figure is not None,
        f"there is neither a table nor a figure of a run {what}",
    )
    for frame in (artefact.table, artefact.data):
        if frame is not None:
            tables.to_csv(frame)
    if artefact.table is not None:
        tables.to_markdown(artefact.table)
        to_latex(artefact.table, f"{report.title}. {artefact.caption}", "tab:x")
    if artefact.figure is not None:
        with figure_style():
            artefact.figure.savefig(io.BytesIO(), format="png")
    return artefact
