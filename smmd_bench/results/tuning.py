"""What a loss was tuned over, how each setting validated, and what was chosen of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..plugin_system.tuned_label import untuned_label
from ..storage.cell import StoredCell

_VALUES = ("epoch", "value", "low", "high", "n")
TUNING_COLUMNS = ("untuned", "trial", "text", "trial_status", "metric", *_VALUES, "chosen")
"""Of `RunFrames.tuning`, after those that tell the cell."""


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
            "trial_status": trial_status(trial),
            "metric": choice.get("metric"),
            **{name: line.get(name) for name in _VALUES},
            "chosen": at == choice.get("chosen"),
        }


def trial_status(cell: StoredCell) -> str:
    """Whether a trial is "done" (validated), "failed", "skipped" or "pending"."""
    if cell.tested is not None:
        return "done"
    if cell.failure:
        return "skipped" if cell.failure.get("skipped") else "failed"
    return "pending"


def chosen_point(content: Mapping[str, Any], now: StoredCell) -> dict[str, Any] | None:
    """What was chosen for a tuned cell, or for the test of transfer of one: text, loss and
    settings; None: nothing."""
    trials = (now.source or now).trials
    pairs = zip(content.get("grid") or (), trials, strict=False)
    return next((dict(point) for point, trial in pairs if trial == now.home), None)
