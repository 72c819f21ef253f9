"""What the cells of a manifest say together, and their order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..storage.cell import BASE

IDENTITY = ("address", "model", "task", "loss", "seed")
"""The columns that every frame of a run starts with: which cell a row is of."""


def what_the_cells_say(cells: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The keys experiment, models, data, generation and plugins of `RunFrames.manifest`."""
    models: dict[str, Any] = {}
    data: dict[str, dict[str, Any]] = {}
    generation: dict[str, dict[str, Any]] = {}
    plugins: dict[str, list[str]] = {}
    for cell in cells:
        model, task = cell["model"], cell["task"]
        if "identity" not in cell:  # completions made elsewhere
            continue
        models[model] = cell["identity"]
        known = data.setdefault(task, {"licence": "", "sizes": {}, "there": {}, "identity": {}})
        known["licence"] = cell["data"]["licence"]
        for part in ("sizes", "there", "identity"):
            known[part] |= cell["data"][part]
        how = generation.setdefault(task, {})
        for key, value in cell["generation"].items():
            by_model = key in ("engine", "dtype", "chat_template", "pixels")
            how[key] = {**how.get(key, {}), model: value} if by_model else value
        for name, digest in cell["plugins"].items():
            plugins[name] = distinct([*plugins.get(name, ()), digest])
    own = [cell for cell in cells if cell["loss"] != BASE and not cell.get("trained_on")] or cells
    keys = {"models": "model", "tasks": "task", "losses": "loss", "seeds": "seed"}
    return {
        "experiment": {name: distinct(cell[key] for cell in own) for name, key in keys.items()},
        "models": models,
        "data": data,
        "generation": generation,
        "plugins": plugins,
    }


def distinct(values: Iterable[Any]) -> list[Any]:
    """The values without repetitions, in order; they need not be hashable."""
    found: list[Any] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found


def in_run_order(
    cells: Sequence[dict[str, Any]], manifest: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The cells by model, task, loss and seed; they are given in the order of the folder.

    Models, tasks and losses stand as the manifest lists them, then those that it does not list;
    among the losses the untuned base comes first and `ce` second (but the labels of `smmd-bench
    score` stand as they were given).
    """
    experiment = manifest.get("experiment") or {}
    first = {} if "predictions" in manifest else {"base": 0, "ce": 1}

    def ranks(key: str, group: str) -> dict[str, tuple[int, int]]:
        listed = [str(item) for item in experiment.get(group) or ()]
        names = dict.fromkeys(str(cell[key]) for cell in cells)
        return {name: (_place(name, listed), at) for at, name in enumerate(names)}

    models, tasks = ranks("model", "models"), ranks("task", "tasks")
    losses = ranks("loss", "losses")

    def key(cell: Mapping[str, Any]) -> tuple[Any, ...]:
        model, task, loss = (str(cell[name]) for name in ("model", "task", "loss"))
        return models[model], tasks[task], first.get(loss, 2), losses[loss], int(cell["seed"])

    return sorted(cells, key=key)


def _place(name: str, listed: Sequence[str]) -> int:
    """Where the experiment lists it; `arithmetic[level=easy]`, a card's level, as `arithmetic`."""
    for known in (name, name.partition("[")[0]):
        if known in listed:
            return listed.index(known)
    return len(listed)
