"""Results of tasks that have no table of the paper's: every metric that the task names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from smmd_bench.contracts import Run
from smmd_bench.publishing.tables import DASH
from smmd_bench.scoring.decoding_rules import GREEDY, split_rule

from ._caption import noise_note, significance_note, spread_note
from ._cells import metrics_of, one_row_a_metric, opponent, why_missing, why_no_row
from ._metric_table import MetricTable, head_of
from ._significance import bold_best
from ._values import P_HOLM, corrected_p, delta, estimate, gain
from ._verdicts import judged_metrics, with_tests_by_metric

ELSEWHERE = ("arithmetic", "gsm8k", "svamp", "clock_time", "chartqa", "samsum")
"""Tasks with a table of their own."""
EXACT = "exact_match"


class TaskTable(MetricTable):
    """All metrics by model, task and loss, with the difference to CE of the task's first one."""

    name = "task_table"
    title = "Results"
    paper = "not in the paper"
    order = 10
    meaning = (
        "The first metric of a task selects the epoch; a completion without an answer counts as "
        "wrong, and is left out of metrics of the error."
    )

    def cells(self, run: Run) -> pd.DataFrame:
        """The cells of tasks without a table of their own."""
        return run.cells[~run.cells["task_name"].isin(ELSEWHERE)]

    def skip(self, run: Run) -> str | None:
        """Without a measured cell of such a task there is no row."""
        if self.cells(run).empty:
            return "every task of the run has a table of its own"
        return why_no_row(self.cells(run), "cell of a task without a table")

    def scores(self, run: Run, cells: pd.DataFrame) -> pd.DataFrame:
        """One row a cell and metric, in full precision, with the tests of exact match."""
        parts = []
        for _, of_task in cells.groupby("task", observed=True):
            found = run.metrics.loc[run.metrics["address"].isin(of_task["address"]), "metric"]
            greedy = [name for name in found.unique() if split_rule(str(name))[1] == GREEDY]
            parts.append(one_row_a_metric(run, of_task, greedy or [EXACT]))
        data = pd.concat(parts, ignore_index=True)
        return with_tests_by_metric(data, run.only(cells))

    def frame(self, data: pd.DataFrame) -> pd.DataFrame:
        """The rows as text; metrics have the names that their tasks give them."""
        headings = _headings(data)
        groups = data.groupby([*self.key], observed=True)
        rows = [_row(group, headings, opponent(data)) for _, group in groups]
        table = pd.DataFrame(rows).fillna(DASH)
        found = [name for name in table.columns if name.startswith("Δ") or name == P_HOLM]
        table = table.drop(columns=[name for name in found if (table[name] == DASH).all()])
        return table.drop(columns="Task") if data["task"].nunique() == 1 else table

    def attributes(self, run: Run, data: pd.DataFrame) -> dict[str, Any]:
        """The task is in the title if it is the only one; bold needs exact match of every cell."""
        headings, tasks = _headings(data), data["task"].unique()
        exact = data[data["metric"] == EXACT]
        of_all = {*exact["task"]} == {*tasks}
        deltas = [_difference(heading, opponent(data)) for heading in headings.values()]
        return {
            "title": f"Results: {tasks[0]}" if len(tasks) == 1 else self.title,
            "values": [*headings.values(), *deltas, P_HOLM],
            "bold": bold_best(exact, headings[EXACT]) if of_all else [],
        }

    def notes(self, run: Run, data: pd.DataFrame) -> list[str]:
        """Sentences on intervals and tests."""
        exact = data[data["metric"] == EXACT]
        return [
            spread_note(data),
            "Δ: paired difference on the same examples.",
            significance_note(exact, opponent(data)) if len(exact) else "",
            noise_note(data, opponent(data)),
        ]


def _headings(data: pd.DataFrame) -> dict[str, str]:
    """The heading of each metric, as its task names it."""
    labels = {m.name: m.label for task in data["task"].unique() for m in metrics_of(str(task))}
    names = [str(metric) for metric in data["metric"].unique()]
    return {name: labels.get(name, name.replace("_", " ").capitalize()) for name in names}


def _row(cells: pd.DataFrame, headings: Mapping[str, str], other: str) -> dict[str, str]:
    """The row of one model, task and loss: all metrics of its cells, which differ in seed alone."""
    main, *_ = metrics = cells["metric"].unique()
    judged = {main, *(metric.name for metric in judged_metrics(str(cells["task"].iloc[0])))}
    row = head_of(cells)
    if why := why_missing(cells):
        return {**row, headings[main]: why}
    for metric in metrics:
        digits = 1 if headings[metric].endswith("(%)") else 2
        of_metric = cells[cells["metric"] == metric]
        row[headings[metric]] = estimate(of_metric, "", digits, interval=metric == main)
        if metric in judged:
            row[_difference(headings[metric], other)] = gain(of_metric, "", digits)
        if metric == main:
            row[P_HOLM] = corrected_p(of_metric, "")
    first = cells[cells["metric"] == main]
    return {
        **row,
        "n": f"{int(first['n'].iloc[0]):,}",
        "Seeds": str(len(first)),
    }


def _difference(heading: str, other: str) -> str:
    """The heading of a metric's difference: `Δ Acc to CE` of `Acc (%)`."""
    return delta(other).replace("Δ", f"Δ {heading.partition(' (')[0]}")
