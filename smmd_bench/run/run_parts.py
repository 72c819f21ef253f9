"""What of a run can go. Reports and `smmd-bench show` need none of it.

They read cell.json, completions, probes, scores, metrics, comparisons, selections and training logs
of the cells that count, and these are in no part. What the run's own command does once a part is
gone follows from `RunDirectory.missing`: a cell without its selected weights is trained again, even
if nothing else of it is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..results.frames import read_run
from .estimate import spell_seconds
from .removal import Part

if TYPE_CHECKING:
    from ..storage.current import CurrentCell

_AGAIN = "the command of the run"


def run_parts(path: Path) -> list[Part]:
    """The parts that a run has; raises UserError if the folder is no run."""
    run = read_run(path)
    status = dict(zip(run.cells["address"], run.cells["status"], strict=True))
    folders = sorted(file.parent for file in (path / "cells").glob("*/cell.json"))
    done = [run.current(folder.name) for folder in folders if status.get(folder.name) == "done"]
    whole = [cell.folder for cell in done if cell.checkpoint is not None]
    started = [f for f in folders if status.get(f.name) == "pending"]
    started += [cell.folder for cell in done if not (cell.folder / "checkpoint").exists()]
    weights = [folder / name for folder in started for name in ("epochs", "training", "checkpoint")]
    unfinished = sorted({file.parent for file in weights if file.exists()})
    failed = [folder for folder in folders if status.get(folder.name) == "failed"]
    replaced = [folder for folder in folders if folder.name not in status]
    kept = [folder / "epochs" for folder in whole if (folder / "epochs").exists()]
    found: list[tuple[str, Sequence[Path], str]] = [
        ("leftovers", [*_leftovers(path, whole)], "nothing: it is never read"),
        ("logs", [path / "logs"], "they do not come back; training logs stay"),
        (
            "failed",
            [file for f in failed for file in sorted(f.iterdir()) if file.name != "cell.json"],
            f"{_AGAIN} tries {_count(failed)} again, from the training on; until then the tables "
            "call them pending",
        ),
        (
            "replaced",
            replaced,
            "no table shows them; to go back to their recipe is to train them again"
            + _time(replaced),
        ),
        (
            "unfinished",
            weights,
            f"{_AGAIN} trains {_count(unfinished)} from the beginning{_time(unfinished)}",
        ),
        (
            "epochs",
            kept,
            "nothing, as long as the same epoch stays the best and its checkpoint stays; with "
            f"other validation data, or if another epoch wins, {_count(kept)} train again",
        ),
        ("checkpoints", [cell.folder / "checkpoint" for cell in done], _cost_of_checkpoints(done)),
    ]
    parts = [
        Part(name, path, tuple(p for p in paths if p.exists()), cost, path)
        for name, paths, cost in found
    ]
    return [part for part in parts if part.paths]


def _leftovers(path: Path, whole: Sequence[Path]) -> Iterator[Path]:
    """Temporary files of killed processes, and states of trainings that are over."""
    for pattern in ("", "cells/*/", "cells/*/epochs/", "regression/*/", "reports/**/"):
        yield from sorted(path.glob(f"{pattern}.*.part"))
    yield from (folder / "training" for folder in whole)


def _cost_of_checkpoints(done: Sequence[CurrentCell]) -> str:
    """A checkpoint is a copy where the selected epoch is kept among the epochs."""
    mine = [cell for cell in done if (cell.folder / "checkpoint").exists()]
    copies = [c for c in mine if c.selection and c.has_epoch(c.selection["best_epoch"])]
    alone = [cell.folder for cell in mine if cell not in copies]
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
    return "; ".join(cost)


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
