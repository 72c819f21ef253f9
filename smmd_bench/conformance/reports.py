"""The checks of a report, on the specimen: two small real runs (`scripts/make_specimen.sh`)."""

import atexit
import io
import shutil
import tarfile
import tempfile
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path

from ..contracts import Artefact, Report, ReportSkippedError
from ..publishing import tables
from ..publishing.style import figure_style
from ..results.frames import RunFrames, read_run
from ..run.comparison import write_comparisons
from ..storage.files import read_json, write_json
from .checks import UncheckedError, require


@cache
def specimen() -> Path:
    """Unpack the runs: `run`, whole; parts of it, `pending` and `one_cell`; `overhead`."""
    # Unpacked once a process, for all reports, and gone when that ends.
    folder = Path(tempfile.mkdtemp(prefix="smmd-bench-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    packed = files("smmd_bench.conformance") / "specimen.tar.xz"
    with as_file(packed) as file, tarfile.open(file) as archive:
        archive.extractall(folder, filter="data")

    # The archive has the comparisons of the statistics that were in use when it was packed.
    write_comparisons(read_run(folder / "run"), resamples=200)
    # A run that has only begun is its manifest; one of one cell has the results of all.
    manifest = read_json(folder / "run" / "manifest.json") or {}
    write_json(folder / "pending" / "manifest.json", manifest)
    cell = next(cell for cell in manifest["cells"] if cell["loss"] == "ce")
    write_json(folder / "one_cell" / "manifest.json", {**manifest, "cells": [cell]})
    for results in (folder / "run").iterdir():
        if results.is_dir():
            (folder / "one_cell" / results.name).symlink_to(results)
    return folder


def _check_parts(report: Report, _: Path | None) -> None:
    """It skips, or shows, a run without results and one of one cell."""
    for name in ("pending", "one_cell"):
        _build(report, read_run(specimen() / name), name)


def _check_full(report: Report, own_run: Path | None) -> None:
    """It shows a run, and the same when made again."""
    folders = [specimen() / "run", specimen() / "overhead"]
    if own_run:
        folders.append(own_run)

    reasons = []
    for folder in folders:
        run = read_run(folder)
        metrics = run.metrics.copy()
        cells = run.cells.copy()
        texts = _build(report, run, folder.name)
        if isinstance(texts, str):
            reasons.append(f"{folder.name}: {texts}")
            continue

        # All reports of a run read the same frames.
        require(
            run.metrics.equals(metrics) and run.cells.equals(cells),
            "it changes a frame of the run in place: work on a copy",
        )
        # From frames of its own, so that nothing is left in them of the first time.
        repeated = _build(report, read_run(folder), folder.name)
        require(texts == repeated, "made again, it is another one")
    if len(reasons) == len(folders):
        raise UncheckedError(
            f"it skips all ({'; '.join(reasons)}): give a run of yours with --run"
        )


REPORT_CHECKS = {"parts of a run": _check_parts, "a full run": _check_full}


def _build(report: Report, run: RunFrames, name: str) -> list[str] | str:
    """Build the report of a run in every format; or the reason why it skips the run."""
    with figure_style():
        try:
            artefact = report.build(run)
        except ReportSkippedError as error:
            reason = str(error)
            require(reason.strip(), f"it skips the run {name} without a reason")
            return reason
        require(
            isinstance(artefact, Artefact), f"build returns a {type(artefact).__name__}"
        )
        # A figure may fail only when it is drawn.
        if artefact.figure is not None:
            artefact.figure.savefig(io.BytesIO(), format="png")
    require(
        report.title.strip() and artefact.caption.strip(),
        f"the title or the caption of the run {name} is empty",
    )
    table = artefact.table
    require(
        table is not None or artefact.figure is not None,
        f"there is neither a table nor a figure of the run {name}",
    )

    texts = []
    if table is not None:
        caption = f"{report.title}. {artefact.caption}"
        texts += [
            tables.to_csv(table),
            tables.to_markdown(table),
            tables.to_latex(table, caption, "tab:x"),
        ]
    if artefact.data is not None:
        texts.append(tables.to_csv(artefact.data))
    return texts
