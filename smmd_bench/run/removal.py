"""`smmd-bench clean`: the parts of runs and of the cache that can go, and how they go.

Reports and `smmd-bench show` need none of the parts: cell.json, completions, probes, scores,
metrics, comparisons, selections and training logs of the cells that count are in no part. What the
run's own command does once a part is gone follows from `RunDirectory.missing`: a cell without its
selected weights is trained again where something needs them.
"""

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..plugin_system.registry import names
from ..results.frames import read_run
from ..storage.addresses import cache_folder
from ..storage.current import CurrentCell
from ..storage.sizes import size_of, spell_seconds

PARTS = {
    "leftovers": "half-written files and states that are no longer read",
    "logs": "what the worker processes printed",
    "failed": "cells that failed, with their tracebacks and what they had trained",
    "replaced": "cells whose place another recipe or version has taken",
    "unfinished": "weights and states from which a stopped training goes on",
    "epochs": "the weights of every epoch, kept by keep_epochs",
    "checkpoints": "the selected weights of finished cells",
    "cache-generated": "examples and pictures that tasks have made, and canaries",
    "cache-digests": "digests of files that were read before",
    "cache-fetched": "data from the hub",
}
"""The parts by name, the cheapest to have again first in runs and in the cache."""
_AGAIN = "the command of the run"


@dataclass(frozen=True)
class Part:
    """Files and folders of one kind in one place: a run (`run` is its folder) or the cache.

    cost: what is lost, or how it comes back.
    """

    name: str
    place: Path
    paths: tuple[Path, ...]
    cost: str
    run: Path | None = None

    @cached_property
    def size(self) -> int:
        """Bytes of all the files; of a link, not what it leads to."""
        return sum(size_of(path)[0] for path in self.paths)

    def to_dict(self) -> dict[str, Any]:
        """All of it, as JSON takes it."""
        return {
            "part": self.name,
            "what": PARTS[self.name],
            "place": str(self.place),
            "paths": [str(path) for path in self.paths],
            "bytes": self.size,
            "cost": self.cost,
        }


def run_parts(path: Path) -> list[Part]:
    """The parts that a run has; raises UserError if the folder is not a run."""
    run = read_run(path)
    rows = dict(zip(run.cells["address"], run.cells["status"], strict=True))
    status = {**dict(zip(run.tuning["trial"], run.tuning["trial_status"], strict=True)), **rows}
    tried = {cell.folder.name: cell for a in rows for cell in run.current(a).trials}
    folders: dict[str | None, list[Path]] = {}
    for file in sorted((path / "cells").glob("*/cell.json")):
        folders.setdefault(status.get(file.parent.name), []).append(file.parent)
    failed, replaced = folders.get("failed", []), folders.get(None, [])
    done = [
        run.current(folder.name) if folder.name in rows else tried[folder.name]
        for folder in folders.get("done", ())
    ]
    whole = [cell.folder for cell in done if cell.checkpoint is not None]
    started = [c.folder for c in done if not (c.folder / "checkpoint").exists()]
    started = [*folders.get("pending", ()), *started]
    weights = [folder / name for folder in started for name in ("epochs", "training", "checkpoint")]
    unfinished = sorted({file.parent for file in weights if file.exists()})
    kept = [folder / "epochs" for folder in whole if (folder / "epochs").exists()]
    found: dict[str, tuple[Iterable[Path], str]] = {
        "leftovers": (_leftovers(path, whole), "nothing: it is never read"),
        "logs": ([path / "logs"], "they do not come back; training logs stay"),
        "failed": (
            [file for f in failed for file in sorted(f.iterdir()) if file.name != "cell.json"],
            f"{_AGAIN} tries {_count(failed)} again, from the training on; until then the tables "
            "call them pending",
        ),
        "replaced": (
            replaced,
            "no table shows them; to go back to their recipe is to train them again"
            + _time(replaced),
        ),
        "unfinished": (
            weights,
            f"{_AGAIN} trains {_count(unfinished)} from the beginning{_time(unfinished)}",
        ),
        "epochs": (
            kept,
            "nothing, as long as the same epoch stays the best and its checkpoint stays; with "
            f"other validation data, or if another epoch wins, {_count(kept)} train again",
        ),
        "checkpoints": ([c.folder / "checkpoint" for c in done], _cost_of_checkpoints(done)),
    }
    parts = [
        Part(name, path, tuple(p for p in paths if p.exists()), cost, path)
        for name, (paths, cost) in found.items()
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
            "nothing that is measured; other examples, tests or engines train "
            f"{_count(alone)} again{_time(alone)}, and so does `smmd-bench work --cell ADDRESS`: "
            "`regress` and `export` leave them out until then"
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

    seconds = 0.0
    for log in (folder / "train_log.parquet" for folder in folders):
        if log.is_file() and "seconds" in pq.read_schema(log).names:
            column = pq.read_table(log, columns=["seconds"])["seconds"].to_pylist()
            seconds += sum(value for value in column if value is not None and value == value)
    return f" (it took {spell_seconds(seconds)})" if seconds else ""


def cache_parts() -> list[Part]:
    """The parts that the cache has: only folders that this program writes there, by name."""
    cache = cache_folder()
    own = (*names("tasks"), "canary")  # a plugin may call itself "..", and not be directly there
    generated = [name for name in own if name not in ("", "..") and Path(name).name == name]
    found = {
        "cache-generated": (
            generated,
            "made again when it is needed, in seconds to minutes; until then the pages of runs "
            "with pictures are made without them",
        ),
        "cache-digests": (["digests"], "each checkpoint is read once more, to the end"),
        "cache-fetched": (["data"], "fetched again when it is needed, which takes a network"),
    }
    parts = [
        Part(name, cache, tuple(cache / f for f in folders if (cache / f).is_dir()), cost)
        for name, (folders, cost) in found.items()
    ]
    return [part for part in parts if part.size]


def remove(paths: Iterable[Path]) -> int:
    """Remove files, folders and links (not what they lead to); returns the bytes that went.

    A folder is renamed first: killed in between, it is a leftover and not half a checkpoint.
    """
    freed = 0
    for path in paths:
        if not os.path.lexists(path):
            continue
        freed += size_of(path)[0]
        if path.is_symlink() or not path.is_dir():
            path.unlink()
            continue
        going = path
        if not path.name.endswith(".part"):
            going = path.with_name(f".{path.name}.{os.getpid()}.part")
            path.rename(going)
        shutil.rmtree(going)
    return freed
