"""The cells to show: by address, by folder, or by model, task, loss and seed."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import UserError, did_you_mean
from ...results.frames import RunFrames, read_run

if TYPE_CHECKING:
    import pandas as pd

_LISTED = 6


@dataclass(frozen=True)
class Wanted:
    """What the user asks for. `name`: an address or its beginning, a run, or None.

    The others filter. A loss or task without brackets means any parameters.
    """

    name: str | None = None
    run: Path | None = None
    model: str | None = None
    task: str | None = None
    loss: str | None = None
    seed: int | None = None


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


def find_group(wanted: Wanted) -> Group:
    """The cells to show. Without an address, those of the first trained cell that the filters keep.

    Raises UserError if no finished cell fits, or more than one has the beginning of an address.
    """
    path, address = _find_place(wanted)
    run = read_run(path)
    if run.cells.empty:
        raise UserError(
            f"{path} has no cells: give a run of `smmd-bench train-eval` or `run` with --run."
        )
    found = _filter(run, wanted)
    if address is not None:
        found = found[found["address"].str.startswith(address)]
        if len(found) > 1:
            raise UserError(
                f"'{address}' begins {len(found)} addresses: give more of one of {_list(found)}."
            )
        if found.empty:
            raise UserError(
                f"No cell of {path} has the address '{address}': give one of {_list(run.cells)}, "
                "or another --run."
            )
    if found.empty:
        raise UserError(f"No cell of {path} fits all options: give one of {_list(run.cells)}.")
    done = found[found["status"] == "done"]
    if done.empty:
        raise UserError(
            f"No cell of {path} that fits is finished, only {_list(found)}: the command that made "
            "the run continues it."
        )
    trained = done[done["loss"] != "base"]
    cell = (done if trained.empty else trained).iloc[0]
    cells = run.cells[run.cells["status"] == "done"]
    cells = cells[(cells["model"] == cell.model) & (cells["task"] == cell.task)]
    others = cells.loc[cells["loss"] != "base", "seed"]
    seed = others.iloc[0] if cell.loss == "base" and others.size else cell.seed
    cells = cells[(cells["loss"] == "base") | (cells["seed"] == seed)]
    exact = address is not None or wanted.loss is not None
    return Group(run, cells, str(cell.address) if exact and cell.loss != "base" else None)


def _find_place(wanted: Wanted) -> tuple[Path, str | None]:
    """The run's folder, and the (beginning of the) address that is asked for."""
    if wanted.name is None:
        return wanted.run or _newest_run(), None
    folder = Path(wanted.name)
    if (folder / "cell.json").is_file():
        return wanted.run or folder.resolve().parent.parent, folder.resolve().name
    if (folder / "manifest.json").is_file():
        return folder, None
    if folder.is_dir() or "/" in wanted.name:
        read_run(folder)  # says why it is not a run
    return wanted.run or _newest_run(), wanted.name


def _newest_run() -> Path:
    """Of the runs in runs/ with a measured cell, the one whose manifest was written last."""
    runs = Path("runs")
    manifests = sorted(runs.glob("*/manifest.json"), key=lambda file: -file.stat().st_mtime)
    if not manifests:
        raise UserError(f"There is no run in {runs.absolute()}: give its folder with --run.")
    for manifest in manifests:
        with suppress(UserError):  # of another version
            if (read_run(manifest.parent).cells["status"] == "done").any():
                return manifest.parent
    raise UserError(
        f"No run in {runs.absolute()} has a measured cell yet: the command that made a run "
        "continues it, or give another folder with --run."
    )


def _filter(run: RunFrames, wanted: Wanted) -> pd.DataFrame:
    """The cells that every option fits; a seed fits the base, too."""
    cells = run.cells
    for column, other in (("model", "model_label"), ("task", "task_name"), ("loss", "loss_name")):
        value = getattr(wanted, column)
        if value is None:
            continue
        known = {str(found) for name in (column, other) for found in run.cells[name]}
        if value not in known:
            raise UserError(
                f"No cell of {run.path} has the {column} '{value}': {did_you_mean(value, known)}"
            )
        cells = cells[(cells[column].astype("str") == value) | (cells[other] == value)]
    if wanted.seed is not None:
        known = {str(seed) for seed in run.cells["seed"]}
        if str(wanted.seed) not in known:
            listed = ", ".join(sorted(known))
            raise UserError(f"{run.path} has no seed {wanted.seed}: it has {listed}.")
        cells = cells[(cells["seed"] == wanted.seed) | (cells["loss"] == "base")]
    return cells


def _list(cells: pd.DataFrame) -> str:
    """Addresses for people, each with what the cell is."""
    named = [
        f"{row['address']} ({row['task']} {row['loss']} seed {row['seed']}"
        + ("" if row["status"] == "done" else f", {row['status']}")
        + ")"
        for row in cells.head(_LISTED).to_dict("records")
    ]
    more = len(cells) - _LISTED
    return ", ".join(named) + (f" and {more} more" if more > 0 else "")
