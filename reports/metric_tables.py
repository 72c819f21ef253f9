"""Tables 1 to 4 and 11 of the paper, and the results of tasks without one."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from smmd_bench.contracts import Run
from smmd_bench.publishing.tables import number
from smmd_bench.scoring.decoding_rules import GREEDY, split_rule

from ._cells import KEY, REFERENCE, judged_metrics, metrics_of, opponent, why_missing, why_no_row
from ._metric_table import Column, MetricTable
from ._paper import published
from ._results import EXACT, result_frame, with_tests
from ._text import P_HOLM, beside_paper, delta, estimate, gain, head_of, p_text

ACCURACY = Column(EXACT, "Acc (%)", interval=True, paper="Paper Acc")
MAE = Column("mean_absolute_error", "MAE", digits=2, delta="Δ MAE")
ROBUST = Column(
    "trimmed_absolute_error", "MAE of 90 %", 2, delta="Δ of 90 %", robust="mean_absolute_error"
)
UNREADABLE = Column("parse_failure_rate", "Parse fail (%)")


class MathTable(MetricTable):
    """Accuracy by our rule and lm-eval's two, by model, task and loss, with differences to CE."""

    name = "math_table"
    title = "Mathematical reasoning results"
    paper = "Table 1"
    tasks = ("gsm8k", "svamp")
    published = "math_reasoning"
    columns = (
        Column(EXACT, "Acc (%)", interval=True, paper="Paper"),
        Column("strict_match", "lm-eval strict"),
        Column("flexible_match", "lm-eval flexible"),
        MAE,
        ROBUST,
        UNREADABLE,
        Column("truncation_rate", "Cut off (%)"),
    )
    shown = (
        "Acc: exact match by value of the final answer, where a completion without a number is "
        "wrong; lm-eval strict and flexible compare text. MAE leaves such completions out, and a "
        "single wild one can dominate it; MAE of 90 % leaves out the largest tenth of the errors."
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
        Column("mean_absolute_error", "MAE", digits=2, paper="Paper MAE", delta="Δ MAE"),
        ROBUST,
        Column("r_squared", "R²", digits=2, paper="Paper R²", delta="Δ R²"),
        UNREADABLE,
    )
    shown = (
        "Acc: exact match by value, where a completion without a number is wrong. MAE and R² leave "
        "such completions out, and a single wild one can dominate them; MAE of 90 % leaves out the "
        "largest tenth of the errors."
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
        Column(
            "time_gap", "Time gap (min)", interval=True, paper="Paper gap", delta="Δ gap"
        ),
        Column("time_gap_wrapped", "12-h gap (min)", delta="Δ 12-h gap"),
        Column("parse_failure_rate", "Invalid (%)"),
    )  # fmt: skip
    shown = (
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
        Column("relaxed_accuracy_lm_eval", "lm-eval relaxed"),
        UNREADABLE,
    )
    shown = (
        "Acc: exact match by value, as in the paper, where a completion without a number is wrong. "
        "Relaxed accuracy takes an answer within 5 % of the truth; lm-eval relaxed is the same as "
        'lm-eval reads numbers (not "~5").'
    )


class TaskTable(MetricTable):
    """All metrics by model, task and loss, with the difference to CE of the task's first one."""

    name = "task_table"
    title = "Results"
    paper = "not in the paper"
    wide = False
    shown = (
        "Every metric of the tasks without a table of the paper's. The first metric of a task "
        "selects the epoch; a completion without an answer counts as wrong, and is left out of "
        "metrics of the error."
    )

    def cells(self, run: Run) -> pd.DataFrame:
        """The cells of tasks without a table of their own."""
        return run.cells[~run.cells["task_name"].isin(ELSEWHERE)]

    def skip(self, run: Run) -> str | None:
        """Without a measured cell of such a task there is no row."""
        if self.cells(run).empty:
            return "every task of the run has a table of its own"
        return why_no_row(self.cells(run), "cell of a task without a table")

    def results(self, run: Run, cells: pd.DataFrame) -> pd.DataFrame:
        """One row a cell and metric that its task has, greedily decoded."""
        parts = []
        for _, of_task in cells.groupby("task", observed=True):
            found = run.metrics.loc[run.metrics["address"].isin(of_task["address"]), "metric"]
            greedy = [name for name in found.unique() if split_rule(str(name))[1] == GREEDY]
            parts.append(result_frame(run, of_task, greedy or [EXACT]))
        data = pd.concat(parts, ignore_index=True)
        return with_tests(data, run, [*data["metric"].unique()])

    def columns_of(self, data: pd.DataFrame) -> Sequence[Column]:
        """The metrics of these rows, by the names that their task gives them."""
        task, other = str(data["task"].iloc[0]), opponent(data)
        labels = {metric.name: metric.label for metric in metrics_of(task)}
        names = [str(metric) for metric in data["metric"].unique()]
        judged = {names[0], *(metric.name for metric in judged_metrics(task))}
        found = []
        for name in names:
            heading = labels.get(name, name.replace("_", " ").capitalize())
            difference = delta(other).replace("Δ", f"Δ {heading.partition(' (')[0]}")
            digits = 1 if heading.endswith("(%)") else 2
            said = difference if name in judged else ""
            found.append(Column(name, heading, digits, name == names[0], delta=said))
        return found


class SamsumTable(MetricTable):
    """ROUGE-1, ROUGE-2 and ROUGE-L by model and loss, with differences to CE."""

    name = "samsum_table"
    title = "SAMSum dialogue summarization"
    paper = "Table 11"
    tasks = ("samsum",)
    published = "samsum"
    wide = False
    key = (*KEY, "metric")
    columns = tuple(Column(f"rouge{kind}", "F1 × 100", interval=True, delta="Δ") for kind in "12L")
    shown = (
        "ROUGE F1 of the first paragraph against the one reference, words stemmed (rouge-score). "
        "Few supervised tokens of a summary are numeric, and on all others every loss is "
        "cross-entropy. Synthetic dialogues are far easier than the corpus."
    )

    def row(self, cells: pd.DataFrame, other: str) -> dict[str, str]:
        """The row of one model, loss and kind, whose cells differ in their seed alone."""
        first, heading = cells.iloc[0], self.columns[0].heading
        head = {**head_of(cells), "ROUGE": str(first["metric"]).removeprefix("rouge")}
        if why := why_missing(cells):
            return {**head, heading: why}
        model, metric = str(first["model"]), str(first["metric"])
        ce = published(self.published, model=model, task=self.tasks[0], loss=REFERENCE).get(metric)
        theirs = None if first["loss"] == REFERENCE else first["published"] - (ce or math.nan)
        return {
            **head,
            heading: estimate(cells, 1, interval=True),
            delta(other): gain(cells),
            P_HOLM: p_text(first["gain_p"]),
            **beside_paper({"Paper": cells}),
            f"Paper {delta(other)}": number(theirs, sign=True),
            "n": f"{int(first['n']):,}",
            "Seeds": str(len(cells)),
        }


ELSEWHERE = ("arithmetic", "gsm8k", "svamp", "clock_time", "chartqa", "samsum")
"""Tasks with a table of their own."""
