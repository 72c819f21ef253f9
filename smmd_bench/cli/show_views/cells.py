"""The cells to show: by address, by folder, or by model, task, loss and seed."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ...errors import UserError
from ...results.frames import RunFrames, read_run
from ...results.named_cells import SHORT, require_named

_LISTED = 6


@dataclass(frozen=True)
class Group:
    """Finished cells of one model, task and seed, the base among them, in the order of the run.

    `named`: the address of the one cell that was asked for, or None.
    """

    run: RunFrames
    cells: pd.DataFrame
    named: str | None

    @property
    def title(self) -> dict[str, str | int]:
        """Model, task and seed."""
        last = self.cells.iloc[-1]
        return {"model": str(last.model), "task": str(last.task), "seed": int(last.seed)}


def find_group(name: str | None, run: Path | None, filters: Mapping[str, Any]) -> Group:
    """The cells to show. Without an address, those of the first trained cell that the filters keep.

    name: an address or its beginning, a cell's folder, a run, or None. filters: a value or None for
    model, task, loss and seed. Raises UserError if no finished cell fits, or more than one has the
    beginning of an address.
    """
    path, address = _find_place(name, run)
    frames = read_run(path)
    cells = frames.cells
    if cells.empty:
        raise UserError(
            f"{path} has no cells: give a run of `smmd-bench train-eval` or `run` with --run."
        )
    found, what = filter_cells(frames, filters), "fits all options"
    if address is not None:
        found, what = (
            found[found["address"].str.startswith(address)],
            f"has the address '{address}'",
        )
        if len(found) > 1:
            raise UserError(
                f"'{address}' begins {len(found)} addresses: give more of one of {_list(found)}."
            )
    if found.empty:
        raise UserError(f"No cell of {path} {what}: give one of {_list(cells)}, or another --run.")
    done = found[found["status"] == "done"]
    if done.empty:
        raise UserError(
            f"No cell of {path} that fits is finished, only {_list(found)}: the command that made "
            "the run continues it."
        )
    trained = done[done["loss"] != "base"]
    cell = (done if trained.empty else trained).iloc[0]
    cells = cells[cells["status"] == "done"]
    cells = cells[(cells["model"] == cell.model) & (cells["task"] == cell.task)]
    is_base = cells["loss"] == "base"
    seeds = cells.loc[~is_base, "seed"]
    seed = seeds.iloc[0] if cell.loss == "base" and len(seeds) else cell.seed
    named = cell.loss != "base" and (address is not None or filters["loss"] is not None)
    group = cells[is_base | (cells["seed"] == seed)]
    return Group(frames, group, str(cell.address) if named else None)


def _find_place(name: str | None, run: Path | None) -> tuple[Path, str | None]:
    """The run's folder, and the (beginning of the) address that is asked for."""
    if name is not None:
        folder = Path(name)
        if (folder / "cell.json").is_file():
            return run or folder.resolve().parent.parent, folder.resolve().name
        if (folder / "manifest.json").is_file():
            if run is not None:
                raise UserError(f"{name} is a run, and so is --run {run}: give one of them.")
            return folder, None
        if folder.is_dir() or "/" in name:
            read_run(folder)  # says why it is not a run
    return run or _newest_run(), name


def _newest_run() -> Path:
    """Of the runs in runs/ with a measured cell, the one whose manifest was written last."""
    runs = Path("runs")
    manifests = sorted(runs.glob("*/manifest.json"), key=lambda file: -file.stat().st_mtime)
    for manifest in manifests:
        with suppress(UserError):  # of another version
            if (read_run(manifest.parent).cells["status"] == "done").any():
                return manifest.parent
    if not manifests:
        raise UserError(f"There is no run in {runs.absolute()}: give its folder with --run.")
    raise UserError(
        f"No run in {runs.absolute()} has a measured cell yet: the command that made a run "
        "continues it, or give another folder with --run."
    )


def filter_cells(run: RunFrames, filters: Mapping[str, Any]) -> pd.DataFrame:
    """The cells that every option fits; a seed fits the base, too.

    Raises UserError for an option that fits none.
    """
    require_named(run, filters)
    cells = run.cells
    for column, value in filters.items():
        if value is None:
            continue
        names = run.cells[[column, SHORT.get(column, column)]].astype("str")
        fits = (names == str(value)).any(axis=1)
        if column == "seed":
            fits |= run.cells["loss"] == "base"
        cells = cells[fits[cells.index]]
    return cells


def _list(cells: pd.DataFrame) -> str:
    """Addresses for people, each with what the cell is."""
    named = []
    for row in cells.head(_LISTED).to_dict("records"):
        state = "" if row["status"] == "done" else f", {row['status']}"
        named.append(f"{row['address']} ({row['task']} {row['loss']} seed {row['seed']}{state})")
    more = len(cells) - _LISTED
    return ", ".join(named) + (f" and {more} more" if more > 0 else "")
