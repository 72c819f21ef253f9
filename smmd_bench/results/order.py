"""In which order the cells of a run folder are shown: the experiment's, not the disk's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def in_run_order(
    cells: Sequence[dict[str, Any]], manifest: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The cells by model, task, loss and seed.

    Models, tasks and losses stand as the manifest lists them, those that it does not list by name
    after it; among the losses the untuned base comes first and `ce` second (but the labels of
    `smmd-bench score` stand as they were given).
    """
    experiment = manifest.get("experiment") or {}
    position = {address: at for at, address in enumerate(manifest.get("cells") or ())}
    last = len(position)
    first = {} if "predictions" in manifest else {"base": 0, "ce": 1}

    def ranks(key: str, group: str) -> dict[str, tuple[int, int, str]]:
        listed = [str(item) for item in experiment.get(group) or ()]
        found: dict[str, tuple[int, int, str]] = {}
        for cell in cells:
            name = str(cell[key])
            at = _place(name, listed)
            rank = (at, position.get(cell["address"], last), name)
            found[name] = min(rank, found.get(name, rank))
        return found

    models, tasks, losses = (
        ranks("model", "models"),
        ranks("task", "tasks"),
        ranks("loss", "losses"),
    )

    def key(cell: Mapping[str, Any]) -> tuple[Any, ...]:
        loss = str(cell["loss"])
        return (
            models[str(cell["model"])],
            tasks[str(cell["task"])],
            first.get(loss, 2),
            losses[loss],
            int(cell["seed"]),
        )

    return sorted(cells, key=key)


def _place(name: str, listed: Sequence[str]) -> int:
    """Where the experiment lists it; `arithmetic[level=easy]`, a card's level, as `arithmetic`."""
    for known in (name, name.partition("[")[0]):
        if known in listed:
            return listed.index(known)
    return len(listed)
