"""Tables 1 to 4 and 11 of the paper, and the results of tasks without one."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from smmd_bench.contracts import Run
from smmd_bench.results.pairing import judged_metrics, label_metrics
from smmd_bench.scoring.decoding_rules import GREEDY, split_rule

from ._metric_table import Column, MetricTable
from ._results import EXACT, add_tests, join_results
from ._text import name_difference

ACCURACY = Column(EXACT, "Acc (%)", interval=True, paper="Paper Acc")
# The mean is carried by a few large errors; this column shows where it is.
TRIMMED = Column(
    "trimmed_absolute_error",
    "MAE of 90 %",
    2,
    delta="Δ of 90 %",
    robust="mean_absolute_error",
)
ROBUST = (TRIMMED,)
"""Errors beside the mean one, in every table of numbers."""
UNREADABLE = Column("parse_failure_rate", "Parse fail (%)")
ELSEWHERE = ("arithmetic", "gsm8k", "svamp", "clock_time", "chartqa", "samsum")


class MathTable(MetricTable):
    """Accuracy by our rule and lm-eval's two, by model, task and loss, with differences to CE."""

    name = "math_table"
    title = "Mathematical reasoning results"
    paper = "Table 1"
    # The paper has one table of both.
    tasks = ("gsm8k", "svamp")
    published = "math_reasoning"
    columns = (
        Column(EXACT, "Acc (%)", interval=True, paper="Paper"),
        # lm-eval's two stand beside ours, since papers report either.
        Column("strict_match", "lm-eval strict"),
        Column("flexible_match", "lm-eval flexible"),
        Column("mean_absolute_error", "MAE", digits=2, delta="Δ MAE"),
        *ROBUST,
        UNREADABLE,
        # A completion that was cut off is wrong for want of room.
        Column("truncation_rate", "Cut off (%)"),
    )
    caption_text = (
        "Acc: exact match by value, where no number is wrong; lm-eval strict and flexible compare "
        "text. MAE leaves such completions out, MAE of 90 % the largest tenth of the errors, too."
    )


class ArithmeticTable(MetricTable):
    """Accuracy, MAE and R² by model and loss, with intervals and the difference to CE."""

    name = "arithmetic_table"
    title = "Arithmetic calculation results"
    paper = "Table 2"
    tasks = ("arithmetic",)
    published = "arithmetic"
    columns = (
        ACCURACY,
        Column(
            "mean_absolute_error", "MAE", digits=2, paper="Paper MAE", delta="Δ MAE"
        ),
        *ROBUST,
        Column("r_squared", "R²", digits=2, paper="Paper R²", delta="Δ R²"),
        UNREADABLE,
    )
    caption_text = (
        "Acc: exact match by value, where no number is wrong. MAE and R² leave such completions "
        "out; MAE of 90 % leaves out the largest tenth of the errors, too."
    )


class ClockTable(MetricTable):
    """Accuracy and both time gaps by model and loss, with intervals and the difference to CE."""

    name = "clock_table"
    title = "Clock-Time results"
    paper = "Table 3"
    tasks = ("clock_time",)
    published = "clock"
    sourced = True
    columns = (
        ACCURACY,
        Column("time_gap", "Time gap (min)", 1, True, paper="Paper gap", delta="Δ gap"),
        # The paper has no such gap, and its own is off by up to 12 hours.
        Column("time_gap_wrapped", "12-h gap (min)", delta="Δ 12-h gap"),
        Column("parse_failure_rate", "Invalid (%)"),
    )
    caption_text = (
        "Acc: exact match of the time, where an invalid completion is wrong. Time gap: the mean "
        "absolute deviation as the paper defines it, without invalid completions; the 12-h gap "
        "goes the short way round the dial (12:50 and 1:00 are 10 minutes apart, not 710)."
    )


class ChartTable(MetricTable):
    """Exact and relaxed accuracy by model and loss, with intervals and the difference to CE."""

    name = "chart_table"
    title = "Chart question answering results"
    paper = "Table 4"
    tasks = ("chartqa",)
    published = "chartqa"
    sourced = True
    columns = (
        ACCURACY,
        Column("relaxed_accuracy", "Relaxed (%)", interval=True, delta="Δ relaxed"),
        # It reads fewer numbers than ours, and is what others report.
        Column("relaxed_accuracy_lm_eval", "lm-eval relaxed"),
        UNREADABLE,
    )
    caption_text = (
        "Acc: exact match by value, where no number is wrong. Relaxed: within 5 % of the truth; "
        'lm-eval relaxed: the same as lm-eval reads numbers (not "~5").'
    )


# A task of a plugin has no table: this one is made from what the task says of its metrics.
class TaskTable(MetricTable):
    """All metrics by model, task and loss, with the difference to CE of the task's first one."""

    name = "task_table"
    title = "Results"
    paper = "not in the paper"
    caption_text = (
        "Every metric of the tasks without a table of the paper's. "
        "A completion without an answer is wrong, and in no metric of the error."
    )

    def cells(self, run: Run) -> pd.DataFrame:
        """The cells of tasks without a table of their own."""
        return run.cells[~run.cells["task_name"].isin(ELSEWHERE)]

    def results(self, run: Run, cells: pd.DataFrame) -> pd.DataFrame:
        """One row a cell and metric that its task has, greedily decoded."""
        blocks = []
        for _, group in cells.groupby("task"):
            # Tasks without a result need a metric all the same: their rows say why.
            metrics = _list_greedy_metrics(run, group) or [EXACT]
            blocks.append(join_results(run, group, metrics))

        data = pd.concat(blocks, ignore_index=True)
        every_metric = data["metric"].unique()
        return add_tests(data, run, [*every_metric])

    def choose_columns(self, data: pd.DataFrame, other: str) -> Sequence[Column]:
        """The metrics of these rows, by the names that their task gives them."""
        # A row is of one task, whose metrics need not be those of the next.
        task = str(data["task"].iloc[0])
        labels = label_metrics(task)
        names = [*map(str, data["metric"].unique())]

        # Differences of every metric would make the table too wide to read.
        judged = {names[0], *(metric.name for metric in judged_metrics(task))}
        columns = []
        for name in names:
            heading = labels.get(name, name.replace("_", " ").capitalize())
            digits = 1 if heading.endswith("(%)") else 2
            delta = ""
            if name in judged:
                # The unit stands in the heading of the value.
                short, _, _ = heading.partition(" (")
                delta = name_difference(other).replace("Δ", f"Δ {short}")

            is_first = name == names[0]
            columns.append(Column(name, heading, digits, is_first, delta=delta))
        return columns


def _list_greedy_metrics(run: Run, cells: pd.DataFrame) -> list[str]:
    """The metrics that these cells have, without those under other decoding rules."""
    is_of_cells = run.metrics["address"].isin(cells["address"])
    names = map(str, run.metrics.loc[is_of_cells, "metric"].unique())
    return [name for name in names if split_rule(name)[1] == GREEDY]


class SamsumTable(MetricTable):
    """ROUGE-1, ROUGE-2 and ROUGE-L by model and loss, with differences to CE."""

    name = "samsum_table"
    title = "SAMSum dialogue summarization"
    paper = "Table 11"
    tasks = ("samsum",)
    published = "samsum"
    columns = tuple(
        Column(f"rouge{k}", f"ROUGE-{k}", 1, True, f"Paper R-{k}", f"Δ R-{k}")
        for k in "12L"
    )
    caption_text = (
        "ROUGE F1 × 100 of the first paragraph against the one reference, words stemmed. Few "
        "supervised tokens of a summary are numeric; on all others every loss is cross-entropy."
    )
