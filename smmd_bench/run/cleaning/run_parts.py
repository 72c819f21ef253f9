"""What of a run can go. Reports and `smmd-bench show` need none of it.

They read cell.json, completions, probes, scores, metrics, comparisons, selections and training logs
of the cells that count, and these are in no part. What the run's own command does once a part is
gone follows from `RunDirectory.missing`: a cell without its selected weights is trained again, even
if nothing else of it is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...results.frames import read_run
from ..estimate import spell_seconds
from .part import Part

if TYPE_CHECKING:
    from ...storage.current import CurrentCell

_AGAIN = "the command of the run"


@dataclass(frozen=True)
class _Cell:
    """A cell's folder. status: done, failed, skipped, pending; replaced: it counts no more."""

    folder: Path
    status: str
    now: CurrentCell | None = None

    @property
    def epochs(self) -> Path:
        return self.folder / "epochs"

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    @property
    def has_weights(self) -> bool:
        """Whether the selected weights are in `checkpoint`."""
        return self.now is not None and self.now.checkpoint is not None

    @property
    def keeps_selected_epoch(self) -> bool:
        """Whether the selected epoch is among those kept, so that the checkpoint is a copy."""
        now = self.now
        return (
            now is not None
            and now.selection is not None
            and now.has_epoch(now.selection["best_epoch"])
        )


def run_parts(path: Path) -> list[Part]:
    """The parts that a run has; raises UserError if the folder is no run."""
    cells = _cells(path)
    done = [cell for cell in cells if cell.status == "done"]
    again = [cell for cell in done if not cell.has_weights and not cell.checkpoint.exists()]
    started = [cell for cell in cells if cell.status == "pending"] + again
    found = [
        ("leftovers", list(_leftovers(path, done)), "nothing: it is never read"),
        ("logs", _there([path / "logs"]), "they do not come back; training logs stay"),
        *_failed(cells),
        *_replaced(cells),
        *_unfinished(started),
        *_epochs([cell for cell in done if cell.has_weights]),
        *_checkpoints(done),
    ]
    return [Part(name, path, tuple(paths), cost, path) for name, paths, cost in found if paths]


def _cells(path: Path) -> list[_Cell]:
    run = read_run(path)
    status = dict(zip(run.cells["address"], run.cells["status"], strict=True))
    folders = sorted(f.parent for f in (path / "cells").glob("*/cell.json"))
    return [
        _Cell(f, status[f.name], run.current(f.name)) if f.name in status else _Cell(f, "replaced")
        for f in folders
    ]


def _there(paths: Sequence[Path]) -> list[Path]:
    return [path for path in paths if path.exists()]


def _leftovers(path: Path, done: Sequence[_Cell]) -> Iterator[Path]:
    """Temporary files of killed processes, and states of trainings that are over."""
    for pattern in ("", "cells/*/", "cells/*/epochs/", "regression/*/", "reports/**/"):
        yield from sorted(path.glob(f"{pattern}.*.part"))
    yield from _there([cell.folder / "training" for cell in done if cell.has_weights])


def _failed(cells: Sequence[_Cell]) -> Iterator[tuple[str, list[Path], str]]:
    folders = [cell.folder for cell in cells if cell.status == "failed"]
    paths = [path for f in folders for path in sorted(f.iterdir()) if path.name != "cell.json"]
    yield (
        "failed", paths,
        f"{_AGAIN} tries {_count(folders)} again, from the training on; until then the tables call "
        "them pending",
    )  # fmt: skip


def _replaced(cells: Sequence[_Cell]) -> Iterator[tuple[str, list[Path], str]]:
    folders = [cell.folder for cell in cells if cell.status == "replaced"]
    yield (
        "replaced", folders,
        "no table shows them; to go back to their recipe is to train them again"
        + _time(folders),
    )  # fmt: skip


def _unfinished(cells: Sequence[_Cell]) -> Iterator[tuple[str, list[Path], str]]:
    paths = [p for c in cells for p in _there([c.epochs, c.folder / "training", c.checkpoint])]
    folders = sorted({path.parent for path in paths})
    yield (
        "unfinished", paths,
        f"{_AGAIN} trains {_count(folders)} from the beginning{_time(folders)}",
    )  # fmt: skip


def _epochs(cells: Sequence[_Cell]) -> Iterator[tuple[str, list[Path], str]]:
    paths = _there([cell.epochs for cell in cells])
    yield (
        "epochs", paths,
        "nothing, as long as the same epoch stays the best and its checkpoint stays; with other "
        f"validation data, or if another epoch wins, {_count(paths)} train again",
    )  # fmt: skip


def _checkpoints(cells: Sequence[_Cell]) -> Iterator[tuple[str, list[Path], str]]:
    mine = [cell for cell in cells if cell.checkpoint.exists()]
    copies = [cell for cell in mine if cell.keeps_selected_epoch]
    alone = [cell.folder for cell in mine if not cell.keeps_selected_epoch]
    cost = []
    if alone:
        cost.append(
            f"reports stay as they are, but {_AGAIN} trains {_count(alone)} again, even if nothing "
            f"else is missing{_time(alone)}; `smmd-bench regress` leaves them out"
        )
    if copies:
        cost.append(
            f"{_count(copies)} have the same weights among their epochs, as long as those stay"
        )
    yield "checkpoints", [cell.checkpoint for cell in mine], "; ".join(cost)


def _count(items: Sequence[object]) -> str:
    return f"{len(items)} cell" + "s" * (len(items) != 1)


def _time(folders: Sequence[Path]) -> str:
    """How long the trainings took by their logs, where they have them."""
    import pyarrow.parquet as pq

    logs = [file for f in folders if (file := f / "train_log.parquet").is_file()]
    seconds = 0.0
    for log in logs:
        if "seconds" in pq.read_schema(log).names:
            column = pq.read_table(log, columns=["seconds"])["seconds"].to_pylist()
            seconds += sum(value for value in column if value is not None and value == value)
    return f" (it took {spell_seconds(seconds)})" if seconds else ""
