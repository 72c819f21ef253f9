"""The order in which the cells of a run are shown: that of the experiment, not of the disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def in_run_order(
    cells: Sequence[dict[str, Any]], experiment: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Cells by model, task, loss and seed.

    Models, tasks and losses stand as the experiment lists them, those that it does not list by
    name after it; among the losses the untuned base comes first and `ce` second.
    """

    def rank(name: str, group: str) -> tuple[int, str]:
        listed = [str(item) for item in experiment.get(group) or ()]
        return (listed.index(name) if name in listed else len(listed), name)

    def key(cell: Mapping[str, Any]) -> tuple[Any, ...]:
        first = {"base": 0, "ce": 1}.get(str(cell["loss"]), 2)
        return (
            rank(str(cell["model"]), "models"),
            rank(str(cell["task"]), "tasks"),
            first,
            rank(str(cell["loss"]), "losses"),
            int(cell["seed"]),
        )

    return sorted(cells, key=key)
