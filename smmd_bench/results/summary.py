"""The cells of a manifest: what they say together, their order, and their rows in frames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..plugin_system.parameters import untuned_label
from ..storage.cell import BASE, StoredCell

IDENTITY = ("address", "model", "task", "loss", "seed")
"""The columns that every frame of a run starts with: which cell a row is of."""
CELL_COLUMNS = (
    "address", "model", "model_label", "task", "task_name", "loss", "loss_name", "seed", "params",
    "trained_on", "status", "stage", "error", "recipe", "sizes",
)  # fmt: skip
METRIC_COLUMNS = ("metric", "value", "low", "high", "n")
"""Of `RunFrames.metrics` and `comparisons`, after those that tell the cell."""
_VALUES = ("epoch", "value", "low", "high", "n")
TUNING_COLUMNS = ("untuned", "trial", "text", "trial_status", "metric", *_VALUES, "chosen")
"""Of `RunFrames.tuning`, after those that tell the cell."""


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


def cell_row(content: Mapping[str, Any], cell: StoredCell) -> dict[str, Any]:
    """The row of the cell that a cell.json describes."""
    failure = cell.failure
    status = "pending" if cell.metrics is None else "done"
    if failure:
        status = "skipped" if failure.get("skipped") else "failed"
    return {
        **{column: content.get(column) for column in CELL_COLUMNS},
        "model_label": content.get("model_label") or content["model"],
        "recipe": content.get("recipe") or {},
        "sizes": (content.get("data") or {}).get("sizes", {}),
        "status": status,
        "stage": failure.get("stage"),
        "error": failure.get("error"),
    }


def tuning_rows(content: Mapping[str, Any], now: StoredCell) -> Iterator[dict[str, Any]]:
    """One row a configuration of a tuned cell, in the order of its grid; none of another cell.

    `untuned` is the loss as it was published, `trial` the address of the trial and `text` what it
    sets. metric, epoch, value, low, high and n say how it validated, at its selected epoch; they
    are missing, and nothing is `chosen`, until all trials of the cell are validated.
    """
    choice = now.choice or {}
    validated = {line["address"]: line for line in choice.get("trials", ())}
    for at, (point, trial) in enumerate(zip(content.get("grid") or (), now.trials, strict=False)):
        line = validated.get(trial.address, {})
        yield {
            "untuned": untuned_label(str(content["loss"])),
            "trial": trial.address,
            "text": point["text"],
            "trial_status": _trial_status(trial),
            "metric": choice.get("metric"),
            **{name: line.get(name) for name in _VALUES},
            "chosen": at == choice.get("chosen"),
        }


def _trial_status(cell: StoredCell) -> str:
    """Whether a trial is "done" (validated), "failed", "skipped" or "pending"."""
    if cell.tested is not None:
        return "done"
    if cell.failure:
        return "skipped" if cell.failure.get("skipped") else "failed"
    return "pending"
