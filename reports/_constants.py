"""What captions say of the best constant answer, which a model must beat."""

from __future__ import annotations

import pandas as pd

from smmd_bench.contracts import Run
from smmd_bench.publishing.style import loss_label
from smmd_bench.publishing.tables import number
from smmd_bench.results.constants import constants_of
from smmd_bench.results.pairing import judged_metrics

from ._results import count_digits

_LISTED = 5
"""Losses that a sentence names."""


def describe_constants(run: Run, cells: pd.DataFrame) -> str:
    """`The best constant answer gets Acc (%) 3.2, MAE 12.40.`; empty without an error to compare.

    Of several tasks each is named, and of several test sets of a task each has its values.
    """
    by_task = _list_texts(run, cells)
    if not by_task:
        return ""
    if len(by_task) == 1:
        (texts,) = by_task.values()
        return f"The best constant answer gets {' or '.join(texts)}."

    clauses = [f"on {task} {' or '.join(texts)}" for task, texts in by_task.items()]
    return f"The best constant answer gets {'; '.join(clauses)}."


def _list_texts(run: Run, cells: pd.DataFrame) -> dict[str, list[str]]:
    """What the best constant answer gets by each metric, of each test set of each task."""
    by_task: dict[str, list[str]] = {}
    constants = constants_of(run, cells).merge(cells[["address", "task"]], on="address")
    groups = constants.groupby(["task", "address"], observed=True, sort=False)
    for (task, _), rows in groups:
        values = rows.set_index("metric")["constant"]
        metrics = [metric for metric in judged_metrics(str(task)) if metric.name in values]

        # Every accuracy that is worth a row beats a constant; an error may not, and none shows it.
        if not any(metric.better == "lower" for metric in metrics):
            continue

        # Cells with the same test examples have the same constant, which is said once.
        named = [_format_value(metric.label, values[metric.name]) for metric in metrics]
        text = ", ".join(named)
        texts = by_task.setdefault(str(task), [])
        if text not in texts:
            texts.append(text)
    return by_task


def describe_unbeaten(run: Run) -> str:
    """The losses whose error is not below that of the best constant answer; empty: none."""
    # The base was not trained on the task, and owes the constant nothing.
    cells = run.cells[run.cells["loss"] != "base"]
    compared = constants_of(run, cells).merge(run.metrics, on=["address", "metric"])
    has_several_tasks = compared["task"].nunique() > 1

    sentences = []
    for (task, name), rows in compared.groupby(["task", "metric"], observed=True):
        metrics = {metric.name: metric for metric in judged_metrics(str(task))}
        metric = metrics[str(name)]
        unbeaten = _select_unbeaten(rows)
        if metric.better == "higher" or unbeaten.empty:
            continue

        on_task = f" on {task}" if has_several_tasks else ""
        constant = _format_value(metric.label, unbeaten["constant"].iloc[0])
        names = _name_losses(unbeaten["value"], count_digits(metric.label))
        sentences.append(f"No better than the best constant answer{on_task} ({constant}): {names}.")
    return " ".join(sentences)


def _select_unbeaten(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean value and constant, over seeds, of the models and losses that are not below it."""
    groups = rows.groupby(["model", "loss"], observed=True)
    means = groups[["value", "constant"]].mean()

    # Not `>=`: a loss without a single number has no error, and has beaten nothing.
    return means[~(means["value"] < means["constant"])]


def _name_losses(errors: pd.Series[float], digits: int) -> str:
    """`SMMD 12.40, NTL 13.00, 2 more` of errors by model and loss."""
    names = []
    for row in errors.head(_LISTED).reset_index().to_dict("records"):
        names.append(f"{loss_label(str(row['loss']))} {number(row['value'], digits)}")
    if len(errors) > _LISTED:
        names.append(f"{len(errors) - _LISTED} more")
    return ", ".join(names)


def _format_value(label: str, value: float) -> str:
    return f"{label} {number(value, count_digits(label))}"
