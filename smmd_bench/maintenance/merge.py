"""Several runs in one folder, for one report: their folders as hard links, without weights."""

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..results.availability import require_plugins
from ..results.frames import RunFrames, read_run
from ..results.summary import distinct
from ..run.comparison import write_comparisons
from ..run.run_directory import RunDirectory, identity_of
from ..storage.cell import StoredCell
from ..storage.files import (
    read_json,
    read_manifest,
    write_folder,
    write_json,
    write_text,
)


def merge_runs(runs: Sequence[Path], out: Path) -> Path:
    """Write `out`, a run folder with the cells of all `runs`, as reports read them, each from the
    first run that has its results; made again from the same runs, `out` is brought up to date.

    Raises UserError if a folder is not a run, if two runs have different results for the same
    model, task, loss and seed, or if `out` is there and was not made from these runs.
    """
    frames = [read_run(run) for run in runs]
    names = [str(run.resolve()) for run in runs]
    merged_before = (read_json(out / "manifest.json") or {}).get("merged")
    if out.exists() and any(out.iterdir()) and merged_before != names:
        raise UserError(
            f"{out} is there and not made from these runs: choose another with --out."
        )
    _require_alike(frames)

    chosen = _choose_cells(frames)
    manifest = _merge_manifests([frame.manifest for frame in frames])
    manifest |= {
        "name": out.name,
        "merged": names,
        "cells": [frame.described[address] for frame, address in chosen],
    }
    all_cells = [(frame, address) for frame in frames for address in frame.described]
    with RunDirectory(out).locked():
        # Versions and hardware are those of the first run.
        content = {**read_manifest(runs[0]), **manifest}
        # Of scored predictions: the labels are those of the cells.
        content.pop("experiment", None)
        write_json(out / "manifest.json", content)
        # Of folders with one name the first stays: that of the chosen cell.
        for frame, address in (*chosen, *all_cells):
            for cell in frame.current(address).family:
                for folder in cell.folders:
                    _link(folder, out / folder.relative_to(frame.path))
        for frame in frames:
            _link_rest(frame.path, out)
        write_comparisons(read_run(out))
        # The manifests of older runs name none.
        RunDirectory(out).record_folders()

    return out


def _link_rest(run: Path, out: Path) -> None:
    """Link what is of no single cell, or says why one failed."""
    for stage in ("regression", "compare", "failed"):
        # What is half written begins with a dot.
        for path in (run / stage).glob("[!.]*"):
            _link(path, out / stage / path.name)


def _require_alike(frames: Sequence[RunFrames]) -> None:
    """Raise UserError where runs share no table, have no cells, or lack their plugins here."""
    kinds = {"predictions" in frame.manifest for frame in frames}
    for frame in frames:
        if not frame.described:
            raise UserError(
                f"{frame.path} has no cells (it may be of smmd-bench overhead): leave it out."
            )
        require_plugins(frame)
    if len(kinds) > 1:
        raise UserError(
            "Scored predictions and trained losses share no table: report each."
        )


def _merge_manifests(manifests: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Merge what manifests say beside their cells; what follows from these is made anew."""
    data: dict[str, Any] = {}
    experiments: list[Any] = []
    for manifest in manifests:
        data |= manifest["data"]
        experiments += manifest.get("experiments") or ()
    commands = dict.fromkeys(manifest.get("command") for manifest in manifests)
    return {
        "data": data,
        "experiments": distinct(experiments),
        "command": "\n".join(filter(None, commands)),
    }


def _choose_cells(frames: Sequence[RunFrames]) -> list[tuple[RunFrames, str]]:
    """Choose each cell's run, in order, and its address there: the first run with its results.
    Raises UserError where two runs have one cell with other stages, such as another test split,
    engine or recipe, or with other weights: no table could set their rows side by side."""
    chosen: dict[tuple[Any, ...], tuple[RunFrames, str]] = {}
    for frame in frames:
        for row in frame.cells.to_dict("records"):
            address = str(row["address"])
            identity = identity_of(row)
            first, first_address = chosen.setdefault(identity, (frame, address))
            cell = frame.current(address)
            first_cell = first.current(first_address)

            # Rows of two runs side by side must answer the same examples in the same way.
            difference = _describe_difference(first_cell, cell)
            if difference is not None:
                which = " ".join(map(str, identity))
                raise UserError(
                    f"{first.path} and {frame.path} have different cells of {which} "
                    f"({difference}): compare them with smmd-bench compare."
                )

            # A run may have planned a cell that another one has finished.
            if first_cell.metrics is None and cell.metrics is not None:
                chosen[identity] = (frame, address)

    return [*chosen.values()]


def _describe_difference(one: StoredCell, other: StoredCell) -> str | None:
    """Describe how the results of a cell in two runs differ; None: they do not."""
    if one.key != other.key:
        stages = [
            stage for stage, part in one.parts.items() if other.parts.get(stage) != part
        ]
        return f"they differ from the stage {[*stages, 'select'][0]} on"

    # Weights that nobody has selected yet contradict nothing.
    if one.tested is None or other.tested is None or one.tested == other.tested:
        return None
    return "they test other weights"


def _link(source: Path, target: Path) -> None:
    """Link a folder or file of results where the disk allows it, without weights."""
    # The file of a failure, which may be another one by now.
    if source.is_file():
        write_text(target, source.read_text(encoding="utf-8"))
    elif source.exists() and not target.exists():
        ignored = shutil.ignore_patterns(".*", "epochs")
        with write_folder(target) as part:
            # A killed call may have left half of a folder, and copytree makes its own.
            shutil.rmtree(part)
            shutil.copytree(source, part, ignore=ignored, copy_function=_link_file)


def _link_file(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        # Two disks share no file, and some file systems have no hard links.
        shutil.copy2(source, target)
