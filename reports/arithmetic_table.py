"""Table 2 of the paper: arithmetic calculation results, each beside its published value."""

from __future__ import annotations

from typing import Any

import pandas as pd

from smmd_bench.contracts import Run
from smmd_bench.plugin_system.parameters import split_spec

from ._metric_table import Column, MetricTable

TASK = "arithmetic"


class ArithmeticTable(MetricTable):
    """Accuracy, MAE and R² by model and loss, with intervals and the difference to CE."""

    name = "arithmetic_table"
    title = "Arithmetic calculation results"
    paper = "Table 2"
    order = 10
    tasks = (TASK,)
    published = "arithmetic"
    columns = (
        Column(
            "exact_match", "Acc (%)", interval=True, paper="Paper Acc",
            meaning="Acc is exact match by value; a completion without a number counts as wrong.",
        ),
        Column(
            "mean_absolute_error", "MAE", digits=2, paper="Paper MAE", delta="Δ MAE",
            meaning="MAE and R² leave it out; a single wild completion can dominate them.",
        ),
        Column(
            "trimmed_absolute_error", "MAE of 90 %", digits=2, delta="Δ of 90 %",
            robust="mean_absolute_error",
            meaning="MAE of 90 % leaves out the largest tenth of the errors as well.",
        ),
        Column("r_squared", "R²", digits=2, paper="Paper R²", delta="Δ R²"),
        Column("parse_failure_rate", "Parse fail (%)"),
    )  # fmt: skip

    def attributes(self, run: Run, data: pd.DataFrame) -> dict[str, Any]:
        """Its title names a level that is not the paper's."""
        title = title_with_levels(self.title, run.cells)
        return {**super().attributes(run, data), "title": title}


def level_note(task: str) -> str:
    """What a title adds for a task spec: nothing for the paper's level, else which it is."""
    _, parameters = split_spec(task)
    if not parameters:
        return ""
    most = int(parameters.get("operations", "99").rpartition("..")[2])
    easier = parameters.get("level") == "easy" or most <= 3
    kind = "an easier level than the paper's" if easier else "not the paper's level"
    return f"{task}, {kind}"


def title_with_levels(title: str, cells: pd.DataFrame) -> str:
    """The title of a report, which names every level that is not the paper's."""
    tasks = [str(task) for task in cells["task"].unique()]
    notes = [note for task in tasks if (note := level_note(task))]
    among = ", among them " if len(notes) < len(tasks) else ": "
    return f"{title}{among}{'; '.join(notes)}" if notes else title
