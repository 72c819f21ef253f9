"""Which run and which cell people mean: by address, by folder, or by model, task, loss, seed."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import UserError, did_you_mean
from ...results.frames import RunFrames, read_run

if TYPE_CHECKING:
    import pandas as pd

RUNS = Path("runs")
_LISTED = 6


@dataclass(frozen=True)
class Wanted:
    """What is asked for: `name` is an address or its beginning, a run, or None; the rest filters.

    A loss or task without its brackets means any parameters.
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

    `named` is the address of the cell that was asked for; None: no single one was.
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

    Raises UserError if nothing finished is meant, or an address is not unique.
    """
    path, address = _place(wanted)
    run = read_run(path)
    found = _filtered(run, wanted)
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
    done = found[found["status"] == "done"]
    if run.cells.empty:
        raise UserError(
            f"{path} has no cells: give a run of `smmd-bench train-eval` or `run` with --run."
        )
    if found.empty:
        raise UserError(
            f"No cell of {path} is meant by all of these options: give one of {_list(run.cells)}."
        )
    if done.empty:
        raise UserError(
            f"No finished cell of {path} is meant, but {_list(found)}: the command that made the "
            "run goes on with it."
        )
    trained = done[done["loss"] != "base"]
    cell = (done if trained.empty else trained).iloc[0]
    cells = run.cells[run.cells["status"] == "done"]
    cells = cells[(cells["model"] == cell.model) & (cells["task"] == cell.task)]
    seeds = cells["seed"] == cell.seed
    if cell.loss == "base" and (others := cells.loc[cells["loss"] != "base", "seed"]).size:
        seeds = cells["seed"] == others.iloc[0]
    cells = cells[(cells["loss"] == "base") | seeds]
    exact = address is not None or wanted.loss is not None
    return Group(run, cells, str(cell.address) if exact and cell.loss != "base" else None)


def newest_run(runs: Path = RUNS) -> Path:
    """Of the runs that have a measured cell, the one whose manifest was written last.

    Raises UserError if there is none.
    """
    manifests = sorted(runs.glob("*/manifest.json"), key=lambda file: file.stat().st_mtime)
    if not manifests:
        raise UserError(f"There is no run in {runs.absolute()}: give its folder with --run.")
    for manifest in reversed(manifests):
        with suppress(UserError):  # of another version
            if (read_run(manifest.parent).cells["status"] == "done").any():
                return manifest.parent
    raise UserError(
        f"No run in {runs.absolute()} has a measured cell yet: the command that made a run goes on "
        "with it, or give another folder with --run."
    )


def _place(wanted: Wanted) -> tuple[Path, str | None]:
    """The run's folder, and the (beginning of the) address that is asked for."""
    name = wanted.name
    if name is None:
        return wanted.run or newest_run(), None
    folder = Path(name)
    if (folder / "cell.json").is_file():
        return wanted.run or folder.resolve().parent.parent, folder.resolve().name
    if (folder / "manifest.json").is_file():
        return folder, None
    if folder.is_dir() or "/" in name:
        read_run(folder)  # says why it is none
    return wanted.run or newest_run(), name


def _filtered(run: RunFrames, wanted: Wanted) -> pd.DataFrame:
    cells = run.cells
    for column, names in (
        ("model", ("model", "model_label")),
        ("task", ("task", "task_name")),
        ("loss", ("loss", "loss_name")),
    ):
        value = getattr(wanted, column)
        if value is None:
            continue
        known = [*dict.fromkeys(str(v) for name in names for v in run.cells[name])]
        if value not in known:
            raise UserError(
                f"No cell of {run.path} has the {column} '{value}': {did_you_mean(value, known)}"
            )
        matches = [cells[name].astype("str") == value for name in names]
        cells = cells[matches[0] | matches[1]]
    if wanted.seed is not None:
        cells = cells[(cells["seed"] == wanted.seed) | (cells["loss"] == "base")]
        if wanted.seed not in set(run.cells["seed"]):
            known = sorted({str(seed) for seed in run.cells["seed"]})
            raise UserError(f"{run.path} has no seed {wanted.seed}: it has {', '.join(known)}.")
    return cells


def _list(cells: pd.DataFrame) -> str:
    """Cells for people: their addresses, with what they are."""
    if cells.empty:
        return "none"
    rows = cells.head(_LISTED).to_dict("records")
    named = [
        f"{row['address']} ({row['task']} {row['loss']} seed {row['seed']}"
        + ("" if row["status"] == "done" else f", {row['status']}")
        + ")"
        for row in rows
    ]
    more = len(cells) - _LISTED
    return ", ".join(named) + (f" and {more} more" if more > 0 else "")
