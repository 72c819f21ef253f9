"""The checks of a report, on the specimen: two small real runs (`scripts/make_specimen.sh`)."""

import atexit
import io
import shutil
import tarfile
import tempfile
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path

from ..contracts import Artefact, Report
from ..publishing import tables
from ..publishing.style import figure_style
from ..results.frames import RunFrames, read_run
from ..run.comparison import write_comparisons
from ..storage.files import read_json, write_json
from .checks import UncheckedError, require


@cache
def specimen() -> Path:
    """A folder with the runs: `run`, whole; parts of it, `pending` and `one_cell`; `overhead`."""
    folder = Path(tempfile.mkdtemp(prefix="smmd-bench-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    packed = files("smmd_bench.conformance") / "specimen.tar.xz"
    with as_file(packed) as file, tarfile.open(file) as archive:
        archive.extractall(folder, filter="data")

    # The archive has the comparisons of the statistics that were in use when it was packed.
    write_comparisons(read_run(folder / "run"), resamples=200)
    manifest = read_json(folder / "run" / "manifest.json") or {}
    cells = manifest["cells"]
    write_json(folder / "pending" / "manifest.json", manifest)
    one = [next(cell for cell in cells if cell["loss"] == "ce")]
    write_json(folder / "one_cell" / "manifest.json", {**manifest, "cells": one})
    for made in filter(Path.is_dir, (folder / "run").iterdir()):
        (folder / "one_cell" / made.name).symlink_to(made)
    return folder


def _parts(report: Report, _: Path | None) -> None:
    """It skips, or shows, a run without results and one of one cell."""
    for name in ("pending", "one_cell"):
        _build(report, read_run(specimen() / name), name)


def _full(report: Report, own: Path | None) -> None:
    """It shows a run, and the same when made again."""
    shown, reasons = False, []
    for folder in (specimen() / "run", specimen() / "overhead", *([own] if own else [])):
        run, name = read_run(folder), folder.name
        before = run.metrics.copy(), run.cells.copy()
        if (first := _build(report, run, name)) is None:
            reasons.append(f"{name}: {report.skip(run)}")
            continue
        shown = True
        unchanged = before[0].equals(run.metrics) and before[1].equals(run.cells)
        require(unchanged, "it changes a frame of the run in place: work on a copy")
        require(first == _build(report, read_run(folder), name), "made again, it is another one")
    if not shown:
        raise UncheckedError(f"it skips all ({'; '.join(reasons)}): give a run of yours with --run")


REPORT_CHECKS = {"parts of a run": _parts, "a full run": _full}


def _build(report: Report, run: RunFrames, name: str) -> list[str] | None:
    """What it makes of a run, in every format; None: it skips the run."""
    if (reason := report.skip(run)) is not None:
        said = isinstance(reason, str) and bool(reason.strip())
        require(said, f"skip gives {reason!r} for the run {name}: a reason, or None")
        return None
    with figure_style():
        artefact = report.build(run)
        require(isinstance(artefact, Artefact), f"build returns a {type(artefact).__name__}")
        if artefact.figure is not None:
            artefact.figure.savefig(io.BytesIO(), format="png")
    said = bool(report.title.strip() and artefact.caption.strip())
    require(said, f"the title or the caption of the run {name} is empty")
    shown = artefact.table is not None or artefact.figure is not None
    require(shown, f"there is neither a table nor a figure of the run {name}")
    made = [tables.to_csv(frame) for frame in (artefact.table, artefact.data) if frame is not None]
    if artefact.table is not None:
        made.append(tables.to_markdown(artefact.table))
        made.append(tables.to_latex(artefact.table, f"{report.title}. {artefact.caption}", "tab:x"))
    return made
