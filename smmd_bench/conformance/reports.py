"""The checks of a report, on runs without a cell, without results, of one cell, and a full one.

They are parts of the specimen: two small real runs (`scripts/make_specimen.sh`), without weights.
"""

import io
import tarfile
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from ..contracts import Artefact, Report
from ..publishing import tables
from ..publishing.style import figure_style
from ..results.frames import RunFrames, read_run
from ..storage.files import read_json, write_json
from .checks import UncheckedError, ViolationError, fail, require, say


@dataclass(frozen=True)
class Specimen:
    """The runs that reports are tried on, unpacked when first needed; own: a user's run."""

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
    def parts(self) -> dict[str, Path]:
        """Runs without a cell, without results, and of one cell for each task."""
        cells = (read_json(self.run / "manifest.json") or {})["cells"]
        kept: dict[str, Collection[str] | None] = {"without a cell": (), "without results": None}
        for cell in cells:
            if cell["loss"] == "ce":
                kept.setdefault(f"of one {cell['task']} cell", {cell["address"]})
        return {what: self._part(f"part-{at}", kept[what]) for at, what in enumerate(kept)}

    @cached_property
    def full(self) -> dict[str, Path]:
        """The whole run, and a measurement of overhead."""
        found = {"full": self.run, "of `smmd-bench overhead`": self.run.with_name("overhead")}
        return {**found, str(self.own): self.own} if self.own else found

    def _part(self, name: str, kept: Collection[str] | None) -> Path:
        """The run with the cells of these addresses; None: with all, and without any result."""
        folder = self.folder / name
        manifest: dict[str, Any] = read_json(self.run / "manifest.json") or {}
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


def _contract(tried: Tried) -> None:
    """It has what Report asks for."""
    require(isinstance(tried.report, Report), "it lacks an attribute or method of Report")
    require(bool(tried.report.title.strip()), "its title is empty")


def _parts(tried: Tried) -> None:
    """It skips, or shows, runs without results and of one cell."""
    for what, folder in tried.runs.parts.items():
        _build(tried.report, read_run(folder), what)


def _full(tried: Tried) -> None:
    """It shows a run, and the same when made again."""
    report, made, reasons = tried.report, 0, []
    for what, folder in tried.runs.full.items():
        run = read_run(folder)
        before = run.metrics.copy(), run.cells.copy()
        first = _build(report, run, what)
        if first is None:
            reasons.append(f"{what}: {report.skip(run)}")
            continue
        made += 1
        unchanged = before[0].equals(run.metrics) and before[1].equals(run.cells)
        require(unchanged, "it changes a frame of the run in place: work on a copy")
        again = _build(report, read_run(folder), what)
        for name in ("table", "data"):
            one, other = getattr(first, name), getattr(again, name)
            same = one is other is None or tables.to_csv(one) == tables.to_csv(other)
            require(same, f"the {name} of a run {what} changes when it is made again")
    if not made:
        raise UncheckedError(f"it skips all ({'; '.join(reasons)}): give a run of yours with --run")


REPORT_CHECKS: dict[str, Callable[[Tried], None]] = {
    "contract": _contract,
    "parts of a run": _parts,
    "a full run": _full,
}


def _build(report: Report, run: RunFrames, what: str) -> Artefact | None:
    """What it makes of a run, rendered in every format; None: it skips the run."""
    try:
        if (reason := report.skip(run)) is not None:
            said = isinstance(reason, str) and bool(reason.strip())
            require(said, f"skip gives {reason!r} for a run {what}: a reason, or None")
            return None
        with figure_style():
            artefact = report.build(run)
            require(isinstance(artefact, Artefact), f"build returns a {type(artefact).__name__}")
            require(bool(artefact.caption.strip()), f"the caption of a run {what} is empty")
            if artefact.figure is not None:
                artefact.figure.savefig(io.BytesIO(), format="png")
    except ViolationError:
        raise
    except Exception as error:
        fail(f"a run {what}: {say(error)}")
    shown = artefact.table is not None or artefact.figure is not None
    require(shown, f"there is neither a table nor a figure of a run {what}")
    if artefact.data is not None:
        tables.to_csv(artefact.data)
    if artefact.table is not None:
        tables.to_csv(artefact.table)
        tables.to_markdown(artefact.table)
        tables.to_latex(artefact.table, f"{report.title}. {artefact.caption}", "tab:x")
    return artefact
