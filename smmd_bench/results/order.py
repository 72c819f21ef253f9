"""In which order the cells of a run folder are shown: the experiment's, not the disk's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


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
