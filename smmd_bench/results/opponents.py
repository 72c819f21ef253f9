"""Which cell each measured cell is compared with."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from .current import BASE

REFERENCE = "ce"


class CellKey(NamedTuple):
    """What tells a cell from the others of a run.

    trained_on: of a test of transfer. test: which of the task's examples it answers, without which
    two cells cannot be paired. recipe: empty for the untuned base, which follows none.
    """

    model: str
    task: str
    trained_on: str | None
    test: str
    recipe: str
    loss: str
    seed: int


def cell_key(cell: Mapping[str, Any]) -> CellKey:
    """The key of a row of `run.cells`, or of a cell.json."""
    trained_on = cell.get("trained_on")
    loss, recipe = str(cell["loss"]), cell.get("recipe") or {}
    return CellKey(
        str(cell["model"]),
        str(cell["task"]),
        trained_on if isinstance(trained_on, str) else None,
        json.dumps([cell.get("data_seed"), recipe.get("test_examples")]),
        "" if loss == BASE else json.dumps(recipe, sort_keys=True),
        loss,
        int(cell["seed"]),
    )


def opponents(keys: Collection[CellKey], reference: str | None = None) -> dict[CellKey, CellKey]:
    """What each measured cell is compared with, where that is measured.

    A loss is compared with cross-entropy of the same recipe and seed; cross-entropy, and a loss
    where no cell of that recipe has cross-entropy, with the untuned base. With a `reference`, a
    file of completions made elsewhere, every other file is compared with it.
    """
    if reference is not None:
        first = {key[:2]: key for key in keys if key.loss == reference}
        others = {key: first.get(key[:2]) for key in keys if key.loss != reference}
        return {key: other for key, other in others.items() if other is not None}
    with_ce = {key._replace(seed=0) for key in keys if key.loss == REFERENCE}
    found = {}
    for key in keys:
        other = key._replace(loss=REFERENCE)
        if key.loss == REFERENCE or other._replace(seed=0) not in with_ce:
            other = key._replace(trained_on=None, recipe="", loss=BASE, seed=0)
        if key.loss != BASE and other in keys:
            found[key] = other
    return found
