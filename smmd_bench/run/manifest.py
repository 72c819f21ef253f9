"""What a run's manifest.json says: its cells, data and models, and how the run came about.

What identifies cells, data and models follows from the cells that the run holds, in their order;
`experiments` and `flags` are all that the folder was asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..contracts import Split
from ..experiment.cell import Cell
from ..experiment.experiment import Experiment
from ..models.circumstances import circumstances
from ..plugin_system.plugin_source import source_digest
from ..plugin_system.registry import engine_identity, load_engine
from ..results.frames import FORMAT
from ..results.summary import distinct, what_the_cells_say


def manifest_of(
    before: Mapping[str, Any] | None,
    experiments: Sequence[Experiment],
    cells: Sequence[Mapping[str, Any]],
    name: str,
) -> dict[str, Any]:
    """The manifest of a folder that holds `cells` (each a cell.json, in order) after `experiments`
    were added to those of the manifest `before`; `name`: of a new run."""
    first = before or {"name": name}
    own = [experiment.to_dict() for experiment in experiments]
    flags = [experiment.to_flags() for experiment in experiments]
    now = circumstances()
    return {
        "format": FORMAT,
        "name": first["name"],
        "experiments": distinct([*first.get("experiments", ()), *own]),
        "flags": distinct([*first.get("flags", ()), *flags]),
        **now,
        **{key: first[key] for key in ("command", "created") if key in first},
        **what_the_cells_say(cells),
    }


def identities(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """identity, data, generation and plugins of each cell.json; data is looked at once a task and
    size."""
    known: dict[tuple[Any, ...], dict[str, Any]] = {}
    found = []
    for cell in cells:
        splits = _splits(cell)
        key = (cell.task, cell.data_seed, *((split, cell.size(split)) for split in splits))
        if key not in known:
            known[key] = _data(cell, splits)
        found.append(
            {
                "identity": dict(cell.card.identity),
                "data": known[key],
                "generation": _generation(cell),
                "plugins": _plugin_digests(cell),
            }
        )
    return found


def _plugin_digests(cell: Cell) -> dict[str, str]:
    """The digest of the source of each plugin that is not first-party, such as `loss huber`."""
    engine, task = load_engine(cell.engine), cell.task_plugin
    used: dict[str, Any] = {f"task {task.name}": task, f"engine {engine.name}": engine}
    if not cell.is_base:
        used[f"loss {cell.loss_plugin.name}"] = cell.loss_plugin
    digests = {name: source_digest(type(plugin)) for name, plugin in used.items()}
    return {name: digest for name, digest in digests.items() if digest is not None}


def examples_there(cell: Cell, split: Split) -> int:
    """How many examples a cell has of a split: those asked for, or fewer where a copy of the data
    has fewer."""
    asked = cell.size(split)
    there = _rows_there(cell, split, asked)
    return asked if there is None else min(asked, there)


def _rows_there(cell: Cell, split: Split, limit: int | None = None) -> int | None:
    """How many examples a copy of the data has, as an identity's `kept` says, or the rows of the
    task's `sources`, of which `limit` are counted; None: they are made, without end."""
    task = cell.task_plugin
    kept = task.identity(split, cell.data_seed).get("kept")
    if kept is None and getattr(task, "sources", None):
        kept = len(task.examples(split, cell.data_seed, limit))
    return None if kept is None else int(kept)


def shortage(cell: Cell, split: Split, there: int) -> str | None:
    """A sentence where fewer examples of a split are there than a cell asks for."""
    asked = cell.size(split)
    if there >= asked:
        return None
    return f"{cell.task}, {split}: {there:,} of the {asked:,} examples asked for are there."


def _splits(cell: Cell) -> tuple[Split, ...]:
    """The splits that a cell uses."""
    splits: tuple[Split, ...] = ("train", "validation", "test")
    return splits if cell.source is None and not cell.is_base else splits[-1:]


def _data(cell: Cell, splits: Sequence[Split]) -> dict[str, Any]:
    """Licence, sizes and identity (digests, seeds) of the splits.

    `sizes` are what a cell uses of a split, `there` what the copy of the data has.
    """
    there = {split: _rows_there(cell, split) for split in splits}
    return {
        "licence": getattr(cell.task_plugin, "licence", "not stated"),
        "sizes": {split: examples_there(cell, split) for split in splits},
        "there": {split: size for split, size in there.items() if size is not None},
        "identity": {s: dict(cell.task_plugin.identity(s, cell.data_seed)) for s in splits},
    }


def _generation(cell: Cell) -> dict[str, Any]:
    """How a cell's completions are decoded."""
    pixels = {"pixels": [cell.recipe.min_pixels, cell.recipe.max_pixels]}
    return {
        "greedy": True,
        "max_new_tokens": cell.task_plugin.max_new_tokens,
        "stop": "end-of-sequence tokens of the tokenizer and of generation_config.json",
        "engine": dict(engine_identity(cell.engine)),
        "dtype": cell.recipe.dtype,
        "chat_template": cell.recipe.chat_template,
        **(pixels if cell.reads_images else {}),
    }
