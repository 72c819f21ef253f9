"""Several runs in one folder, for one report: their folders as hard links, without weights."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..results.frames import RunFrames, read_run
from ..results.summary import distinct
from ..run.comparison import write_comparisons
from ..run.run_directory import RunDirectory, identity_of
from ..storage.cell import StoredCell
from ..storage.files import making, read_json, read_manifest, write_json, write_text


def merge_runs(runs: Sequence[Path], out: Path) -> Path:
    """Write `out`, a run folder with the cells of all `runs`, as reports read them, each from the
    first run that has its results; made again from the same runs, `out` is brought up to date.

    Raises UserError if a folder is not a run, if two runs have different results for the same
    model, task, loss and seed, or if `out` is there and was not made from these runs.
    """
    frames = [read_run(run) for run in runs]
    names = [str(run.resolve()) for run in runs]
    before = read_json(out / "manifest.json")
    if out.exists() and any(out.iterdir()) and (before or {}).get("merged") != names:
        raise UserError(f"{out} is there and not made from these runs: choose another with --out.")
    for run, frame in zip(runs, frames, strict=True):
        if frame.cells.empty:
            raise UserError(f"{run} has no cells (it may be of smmd-bench overhead): leave it out.")
        if ("predictions" in frame.manifest) != ("predictions" in frames[0].manifest):
            raise UserError("Scored predictions and trained losses share no table: report each.")
    chosen = _chosen(frames)
    described = [frame.described[address] for frame, address in chosen]
    others = [(frame, address) for frame in frames for address in frame.cells["address"]]
    manifests = [frame.manifest for frame in frames]
    manifest = {
        **read_manifest(runs[0]),
        "name": out.name,
        "merged": names,
        "data": {task: said for m in manifests for task, said in m["data"].items()},
        "experiments": distinct(e for m in manifests for e in m.get("experiments") or ()),
        "command": "; ".join(dict.fromkeys(str(m.get("command")) for m in manifests)),
    }
    manifest.pop("experiment", None)  # follows from the cells
    with RunDirectory(out).locked():
        write_json(out / "manifest.json", {**manifest, "cells": described})
        for frame, address in (*chosen, *others):  # the first folder of a name stays
            for folder in frame.current(address).folders:
                _link(folder, out / folder.relative_to(frame.path))
        for frame in frames:
            for stage in ("regression", "compare", "failed"):
                for path in (frame.path / stage).glob("[!.]*"):
                    _link(path, out / stage / path.name)
        write_comparisons(read_run(out))
    return out


def _chosen(frames: Sequence[RunFrames]) -> list[tuple[RunFrames, str]]:
    """Each cell's run, in order, and its address there: the first run that has its results. Raises
    UserError where two runs have one cell with other stages, such as another test split, engine or
    recipe, or with other weights: the rows of one table could not be set side by side."""
    found: dict[tuple[Any, ...], tuple[RunFrames, str]] = {}
    for frame in frames:
        for cell in frame.cells.to_dict("records"):
            address = str(cell["address"])
            key, now = identity_of(cell), frame.current(address)
            first, known = found.setdefault(key, (frame, address))
            if other := _difference(first.current(known), now):
                which = " ".join(map(str, key))
                raise UserError(
                    f"{first.path} and {frame.path} have different cells of {which} ({other}): "
                    "compare them with smmd-bench compare."
                )
            if first.current(known).metrics is None and now.metrics is not None:
                found[key] = (frame, address)
    return list(found.values())


def _difference(one: StoredCell, other: StoredCell) -> str | None:
    """How the results of a cell in two runs differ, in words; None: they do not."""
    if one.key != other.key:
        stages = [s for s, part in one.parts.items() if other.parts.get(s) != part]
        return f"they differ from the stage {[*stages, 'select'][0]} on"
    known = [cell.tested for cell in (one, other) if cell.tested is not None]
    return "they test other weights" if len({*known}) > 1 else None


def _link(source: Path, target: Path) -> None:
    """Link a folder or file of results where the disk allows it, without weights."""
    if source.is_file():  # of a failure, which may be another one now
        write_text(target, source.read_text(encoding="utf-8"))
    elif source.exists() and not target.exists():
        ignored = shutil.ignore_patterns(".*", "epochs")
        with making(target) as part:
            shutil.rmtree(part)  # with what a killed call left
            shutil.copytree(source, part, ignore=ignored, copy_function=_link_file)


def _link_file(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
