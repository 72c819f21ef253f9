"""What cells say together: the part of a manifest that follows from each cell.json."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..storage.current import BASE


def what_the_cells_say(cells: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The keys experiment, models, data, generation, plugins and cells of a manifest."""
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
        "cells": [cell["address"] for cell in cells],
    }


def distinct(values: Iterable[Any]) -> list[Any]:
    """The values without repetitions, in order; they need not be hashable."""
    found: list[Any] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found
