"""Several runs in one folder, for one report: their cells as hard links, without checkpoints."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UserError
from ..manifest import together
from ..results.files import read_json, write_json
from ..results.run import read_run

if TYPE_CHECKING:
    from ..results.run import RunFrames

IDENTITY = ("model", "task", "loss", "seed")
_FOLDERS = ("cells", "regression")
_LEFT_OUT = ("checkpoint", "epochs", "merged")


def merge_runs(runs: Sequence[Path], out: Path) -> Path:
    """Write `out`, a run folder with the cells of all `runs`, as reports read them.

    A cell that several runs have at one address is there once. What the runs lack by themselves,
    the comparison of a loss with a CE that another run trained, is made here. Made again from the
    same runs, `out` is brought up to date; the files of `runs` are only read.

    Raises UserError if a folder is no run, if two runs have different results for the same model,
    task, loss and seed, or if `out` is there and was not made from these runs.
    """
    frames = [read_run(run) for run in runs]
    names = [str(run.resolve()) for run in runs]
    before = read_json(out / "manifest.json")
    if out.exists() and any(out.iterdir()) and (before or {}).get("merged") != names:
        raise UserError(f"{out} is there and not made from these runs: choose another with --out.")
    for run, frame in zip(runs, frames, strict=True):
        if frame.cells.empty:
            raise UserError(f"{run} has no cells (it may be of smmd-bench overhead): leave it out.")
    _check_agreement(runs, frames)
    write_json(out / "manifest.json", {"merged": names})  # a killed call is known by it
    for run in runs:
        for kind in _FOLDERS:
            for folder in sorted((run / kind).glob("*")):
                _link(folder, out / kind / folder.name)
    manifests = [frame.manifest for frame in frames]
    write_json(out / "manifest.json", _manifest(manifests, names, out.name))
    _compare(out)
    return out


def _check_agreement(runs: Sequence[Path], frames: Sequence[RunFrames]) -> None:
    """Raise UserError where two runs have one cell with different stages, such as another test
    split, engine or recipe: the rows of one table could not be set side by side."""
    found: dict[tuple[Any, ...], tuple[Any, Path]] = {}
    for run, frame in zip(runs, frames, strict=True):
        for cell in frame.cells.to_dict("records"):
            key = tuple(cell[name] for name in IDENTITY)
            content = read_json(run / "cells" / str(cell["address"]) / "cell.json") or {}
            addresses = {**(content.get("addresses") or {}), "train": str(cell["address"])}
            first, origin = found.setdefault(key, (addresses, run))
            stages = [stage for stage in first if first[stage] != addresses.get(stage)]
            if stages:
                which = " ".join(map(str, key))
                raise UserError(
                    f"{origin} and {run} have different cells of {which} (they differ from the "
                    f"stage {stages[0]} on): compare them with smmd-bench compare."
                )


def _link(source: Path, target: Path) -> None:
    """The files of a folder of results, as hard links where the disk allows it."""
    if source.name.startswith(".") or source.name in _LEFT_OUT:
        return
    if source.is_dir():
        for inner in source.iterdir():
            _link(inner, target / inner.name)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists() and target.samefile(source):
        return
    if target.name == "comparison.json" and target.exists():
        return
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _manifest(manifests: Sequence[dict[str, Any]], names: list[str], name: str) -> dict[str, Any]:
    """The first run's manifest with models, data, experiments and cells of all."""
    merged = dict(manifests[0])
    for key in ("models", "data", "generation", "plugins"):
        merged[key] = {k: v for manifest in manifests for k, v in (manifest.get(key) or {}).items()}
    experiments = [e for m in manifests for e in m.get("experiments") or [m.get("experiment")] if e]
    merged["experiment"] = together(experiments)
    merged["experiments"] = experiments
    merged["cells"] = list(dict.fromkeys(a for m in manifests for a in m.get("cells") or ()))
    merged["flags"] = list(dict.fromkeys(f for m in manifests for f in m.get("flags") or ()))
    merged["command"] = "; ".join(dict.fromkeys(str(m.get("command")) for m in manifests))
    return {**merged, "name": name, "merged": names}


def _compare(out: Path) -> None:
    """Compare cells with the CE of their model, task, recipe and seed where no run did."""
    from ..registry import load_task
    from ..scoring.comparison import CellKey, Measured, opponents, write_comparison

    done = read_run(out).cells
    known = {}
    for cell in done[done["status"] == "done"].to_dict("records"):
        trained_on = cell["trained_on"] if isinstance(cell["trained_on"], str) else None
        recipe = str(cell["recipe"])
        key = CellKey(cell["model"], cell["task"], trained_on, recipe, cell["loss"], cell["seed"])
        folder = out / "cells" / cell["address"]
        measured = (read_json(folder / "metrics.json") or {})["address"]
        known[key] = Measured(folder, cell["address"], cell["loss"], measured)
    for key, other in opponents(known.keys()).items():
        try:
            plugin = load_task(key.task)
        except UserError:
            continue
        write_comparison(plugin, known[key], known[other])
