"""What captions say of the best constant answer, which a model must beat."""

from __future__ import annotations

import pandas as pd

from smmd_bench.contracts import Run
from smmd_bench.publishing.style import loss_label
from smmd_bench.publishing.tables import number
from smmd_bench.results.constants import constants_of
from smmd_bench.results.verdict import judged_metrics

from ._results import digits_of

_LISTED = 5
"""Losses that a sentence names."""


def describe_constants(run: Run, cells: pd.DataFrame) -> str:
    """`The best constant answer gets Acc (%) 3.2, MAE 12.40.`; empty without an error to compare.

    Of several tasks each is named, and of several test sets of a task each has its values.
    """
    constants = constants_of(run, cells).merge(cells[["address", "task"]], on="address")
    by_task: dict[str, list[str]] = {}
    for (task, _), rows in constants.groupby(["task", "address"], observed=True, sort=False):
        values = dict(zip(rows["metric"], rows["constant"], strict=True))
        metrics = [metric for metric in judged_metrics(str(task)) if metric.name in values]
        if not any(metric.better == "lower" for metric in metrics):
            continue
        text = ", ".join(_value_text(metric.label, values[metric.name]) for metric in metrics)
        texts = by_task.setdefault(str(task), [])
        if text not in texts:
            texts.append(text)

    if not by_task:
        return ""
    if len(by_task) == 1:
        (texts,) = by_task.values()
        return f"The best constant answer gets {' or '.join(texts)}."
    named = (f"on {task} {' or '.join(texts)}" for task, texts in by_task.items())
    return f"The best constant answer gets {'; '.join(named)}."


def describe_unbeaten(run: Run) -> str:
    """The losses whose error is not below that of the best constant answer; empty: none."""
    cells = run.cells[run.cells["loss"] != "base"]
    key = ["address", "metric"]
    compared = constants_of(run, cells).merge(run.metrics, on=key)
    sentences = []
    for (task, metric_name), rows in compared.groupby(["task", "metric"], observed=True):
        (metric,) = [m for m in judged_metrics(str(task)) if m.name == metric_name]
        if metric.better == "higher":
            continue
        losses = rows.groupby(["model", "loss"], observed=True)[["value", "constant"]].mean()
        unbeaten = losses[~(losses["value"] < losses["constant"])]
        if unbeaten.empty:
            continue
        digits = digits_of(metric.label)
        names = [
            f"{loss_label(str(row['loss']))} {number(row['value'], digits)}"
            for row in unbeaten.head(_LISTED).reset_index().to_dict("records")
        ]
        if len(unbeaten) > _LISTED:
            names.append(f"{len(unbeaten) - _LISTED} more")
        constant = _value_text(metric.label, float(unbeaten["constant"].iloc[0]))
        on_task = f" on {task}" if compared["task"].nunique() > 1 else ""
        sentences.append(
            f"No better than the best constant answer{on_task} ({constant}): {', '.join(names)}."
        )
    return " ".join(sentences)


def _value_text(label: str, value: float) -> str:
    return f"{label} {number(value, digits_of(label))}"
