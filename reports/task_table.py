"""Results of tasks that have no table of the paper's: every metric that the task names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.publishing.style import loss_label
from smmd_bench.publishing.tables import DASH

from ._cells import (
    P_HOLM,
    corrected_p,
    decoding,
    difference_and_opponent,
    estimate,
    in_order,
    measured,
    metrics_beside_published,
    metrics_of,
    missing_note,
    model_columns,
    opponent,
    why_missing,
    with_holes,
)
from ._main_losses import main_losses
from ._sample import sample_note
from ._significance import bold_best, significance_note, with_tests

ELSEWHERE = ("arithmetic", "gsm8k", "svamp", "clock_time", "chartqa", "samsum")
"""Tasks with a table of their own."""
EXACT = "exact_match"
PARTS = ("value", "low", "high", "n")


@dataclass(frozen=True)
class TaskTable:
    """All metrics by model, task and loss, with the difference to CE of the task's first one."""

    name: ClassVar[str] = "task_table"
    title: ClassVar[str] = "Results"
    paper: ClassVar[str] = "not in the paper"

    def skip(self, run: Run) -> str | None:
        """Without a measured cell of such a task there is no row."""
        cells = _cells(run)
        if cells.empty:
            return "every task of the run has a table of its own"
        return (
            "no cell of a task without a table has results yet" if measured(cells).empty else None
        )

    def build(self, run: Run) -> Artefact:
        """One row a model, task and loss; over several seeds mean ± standard deviation."""
        run, left = main_losses(run.only(_cells(run)))
        cells = run.cells
        shown = with_holes(cells)
        data = task_scores(run, shown)
        exact = data[data["metric"] == EXACT]
        data = with_tests(data, opponent(data), of=exact)
        labels = {m.name: m.label for task in data["task"].unique() for m in metrics_of(str(task))}
        names = {metric: labels.get(metric, _spelled(metric)) for metric in data["metric"].unique()}
        groups = data.groupby(["model", "task", "loss"], observed=True)
        table = pd.DataFrame([_row(group, names) for _, group in groups]).fillna(DASH)
        if cells["task"].nunique() == 1:
            table = table.drop(columns="Task")
            table.attrs["title"] = f"Results: {cells['task'].iloc[0]}"
        else:
            table.attrs["title"] = self.title
        table.attrs["values"] = [
            *names.values(), *(c for c in table if str(c).startswith("Δ")), "vs", P_HOLM,
        ]  # fmt: skip
        if len(exact) == len(shown):
            table.attrs["bold"] = bold_best(data[data["metric"] == EXACT], names[EXACT])
        caption = _caption(run, data, cells) + left + missing_note(cells)
        return Artefact(caption=caption, table=table, data=data)


def task_scores(run: Run, cells: pd.DataFrame) -> pd.DataFrame:
    """One row a cell and metric, in full precision.

    model, params, task, loss, seed, status, stage, metric; value, low, high, n; against_loss,
    difference, difference_low, difference_high, b, c and p of McNemar's test.
    """
    found = run.metrics[run.metrics["address"].isin(cells["address"])]
    parts = []
    for task in cells["task"].unique():
        of_task = cells[cells["task"] == task]
        for metric in list(found[found["task"] == task]["metric"].unique()) or [EXACT]:
            part = metrics_beside_published(run, of_task, [metric], None, (), compared=str(metric))
            part = part.rename(columns={f"{metric}_{name}": name for name in PARTS})
            parts.append(part.assign(metric=str(metric)))
    return in_order(pd.concat(parts, ignore_index=True), cells)


def _cells(run: Run) -> pd.DataFrame:
    return run.cells[~run.cells["task_name"].isin(ELSEWHERE)]


def _spelled(metric: str) -> str:
    return metric.replace("_", " ").capitalize()


def _row(rows: pd.DataFrame, names: dict[str, str]) -> dict[str, str]:
    """The row of one (model, task, loss): all metrics of its cells, which differ in seed alone."""
    first = rows.iloc[0]
    row = {
        **model_columns(first["model"], first["params"]),
        "Task": str(first["task"]),
        "Loss": loss_label(first["loss"]),
    }
    metrics = rows["metric"].unique()
    if why := why_missing(rows):
        return {**row, names[metrics[0]]: why}
    for metric in metrics:
        digits = 1 if names[metric].endswith("(%)") else 2
        of_metric = rows[rows["metric"] == metric]
        row[names[metric]] = estimate(of_metric, "", digits, interval=metric == metrics[0])
    main = rows[rows["metric"] == metrics[0]]
    row |= difference_and_opponent(main, f"Δ {names[metrics[0]].partition(' (')[0]}")
    del row["p"]  # of each seed, not corrected
    row |= corrected_p(rows)
    row["n"] = f"{int(first['n']):,}"
    row["Seeds"] = str(len(main))
    return row


def _caption(run: Run, data: pd.DataFrame, cells: pd.DataFrame) -> str:
    key = ["model", "task", "loss", "metric"]
    several = measured(data).groupby(key, observed=True).size().max() > 1
    parts = [
        decoding(run),
        "The first metric of a task selects the epoch; what cannot be read as an answer is wrong, "
        "and left out of metrics of the error.",
        sample_note(run, cells),
        "Brackets: 95 % intervals, percentile bootstrap over the n test examples.",
    ]
    if several:
        parts.append("±: standard deviation over training seeds.")
    parts.append(
        "Δ: paired difference of the first metric on the same examples to the row named under vs."
    )
    if (data["metric"] == EXACT).any():
        parts.append(significance_note(opponent(data), several=several))
    return " ".join(parts)
