"""Which cells of a run folder are shown, and in which order: the experiment's, not the disk's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

IDENTITY = ("model", "task", "loss", "seed")


def in_run_order(
    cells: Sequence[dict[str, Any]], manifest: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The current cells by model, task, loss and seed.

    Models, tasks and losses stand as the manifest lists them, those that it does not list by name
    after it; among the losses the untuned base comes first and `ce` second (but the labels of
    `smmd-bench score` stand as they were given).
    """
    cells = _current(cells, manifest)
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


def _current(
    cells: Sequence[dict[str, Any]], manifest: Mapping[str, Any]
) -> Sequence[dict[str, Any]]:
    """Without the cells that another of the same model, task, loss and seed has replaced.

    A changed plugin or recipe gives a cell a new address, and the folder of the old one stays; the
    manifest lists the new one.
    """
    listed = set(manifest.get("cells") or ())
    replaced = {tuple(cell[key] for key in IDENTITY) for cell in cells if cell["address"] in listed}
    return [
        cell
        for cell in cells
        if cell["address"] in listed or tuple(cell[key] for key in IDENTITY) not in replaced
    ]
