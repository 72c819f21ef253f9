"""Which metrics of a task decide: over its epochs, and over its losses."""

from __future__ import annotations

from collections.abc import Sequence

from ..contracts import Metric, Task
from ..errors import UserError, did_you_mean

RATES = ("parse_failure_rate", "truncation_rate")
"""Rates of completions, not errors of answers, though lower is better."""


def judging_metrics(metrics: Sequence[Metric]) -> list[Metric]:
    """The metrics that losses are judged by: the first, and the first error, such as MAE."""
    errors = [m for m in metrics if m.better == "lower" and m.name not in RATES]
    return [*metrics[:1], *(error for error in errors[:1] if error not in metrics[:1])]


def selecting_metrics(task: Task, select_by: str | None = None) -> list[Metric]:
    """The metric that selects epochs and trials, and the one that breaks its ties, if any.

    select_by: the recipe's setting; None: the task's own `select_by`, or else its first metric.
    Ties of an error are broken by the first metric, all others by the first error. Raises UserError
    for a metric that the task does not have.
    """
    metrics = {metric.name: metric for metric in task.metrics()}
    name = select_by or getattr(task, "select_by", None) or next(iter(metrics))
    if name not in metrics:
        raise UserError(
            f"{task.name} has no metric '{name}' to select epochs by: {did_you_mean(name, metrics)}"
        )

    # Epochs often tie in exact match, since validation sets are small.
    tie_breakers = [m for m in judging_metrics(task.metrics()) if m.name != name]
    return [metrics[name], *tie_breakers[:1]]
