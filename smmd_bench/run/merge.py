"""Several runs in one folder, for one report: their cells as hard links, without checkpoints."""

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..results.frames import RunFrames, read_run
from ..results.summary import distinct, what_the_cells_say
from ..storage.current import CurrentCell
from ..storage.files import read_json, write_json
from ..storage.manifest import PLUGIN_PATHS, plugin_files_of
from .comparison import write_comparisons
from .run_directory import identity_of


def merge_runs(runs: Sequence[Path], out: Path) -> Path:
    """Write `out`, a run folder with the cells of all `runs`, as reports read them.

    A cell that several runs have at one address is there once, from the first that has results.
    A loss whose CE was trained in another run is compared with it here. Made again from the same
    runs, `out` is brought up to date; the files of `runs` are only read.

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
    cells = _chosen(frames)
    folders, chosen = _with_trials(cells.values()), {k: c.folder for k, c in cells.items()}
    write_json(out / "manifest.json", {"merged": names})  # a killed call is known by it
    _link_all(out / "cells", folders)
    found = [f for run in runs for f in sorted((run / "regression").glob("[!.]*")) if f.is_dir()]
    _link_all(out / "regression", {folder.name: folder for folder in reversed(found)})
    write_json(out / "manifest.json", _manifest([f.manifest for f in frames], out, chosen, names))
    write_comparisons(read_run(out))
    return out


def _chosen(frames: Sequence[RunFrames]) -> dict[tuple[Any, ...], CurrentCell]:
    """The files of each cell, in order: from the first run that has its results.

    Raises UserError where two runs have one cell with other stages, such as another test split,
    engine or recipe, or with other weights: the rows of one table could not be set side by side.
    """
    found: dict[tuple[Any, ...], tuple[RunFrames, CurrentCell]] = {}
    for frame in frames:
        for cell in frame.cells.to_dict("records"):
            key, now = identity_of(cell), frame.current(str(cell["address"]))
            first, known = found.setdefault(key, (frame, now))
            if other := _difference(known, now):
                which = " ".join(map(str, key))
                raise UserError(
                    f"{first.path} and {frame.path} have different cells of {which} ({other}): "
                    "compare them with smmd-bench compare."
                )
            if known.metrics is None and now.metrics is not None:
                found[key] = (frame, now)
    return {key: cell for key, (_, cell) in found.items()}


def _with_trials(cells: Iterable[CurrentCell]) -> dict[str, Path]:
    """The folders of the cells and of the trials of tuned ones, by name.

    Raises UserError where a trial is there with other weights: the choice would not hold.
    """
    found = {cell.folder.name: cell for cell in cells}
    for trial in [trial for cell in found.values() for trial in cell.trials]:
        first = found.setdefault(trial.folder.name, trial)
        if first.tested is None:
            found[trial.folder.name] = trial
        elif trial.tested not in (None, first.tested):
            raise UserError(
                f"{first.folder.parents[1]} and {trial.folder.parents[1]} have different cells of "
                f"the trial {trial.folder.name} (they test other weights): compare them with "
                "smmd-bench compare."
            )
    return {name: cell.folder for name, cell in found.items()}


def _difference(one: CurrentCell, other: CurrentCell) -> str | None:
    """How the results of a cell in two runs differ, in words; None: they do not."""
    for stage, address in one.addresses.items():
        if other.addresses.get(stage) != address:
            return f"they differ from the stage {stage} on"
    both = one.metrics is not None and other.metrics is not None
    return "they test other weights" if both and one.tested != other.tested else None


def _link_all(target: Path, folders: Mapping[str, Path]) -> None:
    """Make `target` hold these folders by name, and nothing else.

    Comparisons that were made there stay: their stamps say whether they still hold.
    """
    made = {
        file.relative_to(target): file.read_bytes()
        for name in ("comparison", "noise")
        for file in target.glob(f"*/{name}.json")
    }
    if target.exists():
        shutil.rmtree(target)
    ignored = shutil.ignore_patterns(".*", "checkpoint", "epochs", "merged")
    for name, folder in folders.items():
        shutil.copytree(folder, target / name, ignore=ignored, copy_function=_link)
    for file, content in made.items():
        if file.parent.name in folders:
            (target / file).unlink(missing_ok=True)  # it may be a link to a run's own
            (target / file).write_bytes(content)


def _link(source: str, target: str) -> None:
    """Link a file of results where the disk allows it."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _manifest(
    manifests: Sequence[dict[str, Any]],
    out: Path,
    chosen: Mapping[tuple[Any, ...], Path],
    names: list[str],
) -> dict[str, Any]:
    """The first run's manifest with models, data, experiments and cells of all."""
    cells = [read_json(folder / "cell.json") or {} for folder in chosen.values()]
    said = what_the_cells_say(cells)
    for key in ("models", "data", "generation"):  # of completions made elsewhere no cell says it
        said[key] = {k: v for m in (*manifests, said) for k, v in (m.get(key) or {}).items()}
    merged = {**manifests[0], **said}
    for key in ("experiments", "flags"):
        merged[key] = distinct(item for m in manifests for item in m.get(key) or ())
    merged[PLUGIN_PATHS] = {
        file: str(path.resolve())
        for run, manifest in zip(names, manifests, strict=True)
        for file, path in plugin_files_of(Path(run), manifest).items()
    }
    merged["command"] = "; ".join(dict.fromkeys(str(m.get("command")) for m in manifests))
    return {**merged, "name": out.name, "merged": names}
