"""Tables 1 to 4 and 11 of the paper, and of tasks without one: a row a model, task and loss.

A table declares its columns; rows are pivots of the result frame, each metric beside its published
value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.publishing.tables import DASH
from smmd_bench.scoring.decoding_rules import GREEDY, split_rule

from . import _cells
from ._cells import KEY, judged_metrics, metrics_of, opponent, why_missing
from ._paper import UNKNOWN, data_source, with_published
from ._results import EXACT, result_frame, widened, with_tests
from ._text import (
    NOTES,
    P_HOLM,
    beside_paper,
    caption,
    corrected_p,
    delta,
    estimate,
    gain,
    head_of,
    without_dashes,
    without_paper,
)


@dataclass(frozen=True)
class Column:
    """A metric of a table.

    `interval`: the value has its interval. `paper`: the heading of its published value, if it has
    one. `delta`: the heading of its difference, if it has a column besides the first metric's.
    `robust`: the metric in whose place it can be read; it is shown where that is more than twice as
    large in a cell.
    """

    metric: str
    heading: str
    digits: int = 1
    interval: bool = False
    paper: str = ""
    delta: str = ""
    robust: str = ""


ACCURACY = Column(EXACT, "Acc (%)", interval=True, paper="Paper Acc")
MAE = Column("mean_absolute_error", "MAE", digits=2, delta="Δ MAE")
ROBUST = Column(
    "trimmed_absolute_error", "MAE of 90 %", 2, delta="Δ of 90 %", robust="mean_absolute_error"
)
UNREADABLE = Column("parse_failure_rate", "Parse fail (%)")


@dataclass(frozen=True)
class MetricTable:
    """What a table of results declares, and how it is made of that.

    `published` is its key in `paper.yaml`, `shown` its caption. The first column is the one that
    losses are compared by. `sourced`: a column names the source of the data.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    paper: ClassVar[str]
    order: ClassVar[int] = 10
    tasks: ClassVar[tuple[str, ...]] = ()
    columns: ClassVar[tuple[Column, ...]] = ()
    published: ClassVar[str] = ""
    sourced: ClassVar[bool] = False
    wide: ClassVar[bool] = True
    shown: ClassVar[str]
    key: ClassVar[tuple[str, ...]] = tuple(KEY)

    def cells(self, run: Run) -> pd.DataFrame:
        """The cells of the tasks, whatever their parameters and status."""
        return run.cells[run.cells["task_name"].isin(self.tasks)]

    def skip(self, run: Run) -> str | None:
        """Without a measured cell of these tasks there is no row."""
        return _cells.why_no_row(self.cells(run), f"cell of {' or '.join(self.tasks)}")

    def build(self, run: Run) -> Artefact:
        """One row a model, task and loss; over several seeds mean ± standard deviation."""
        run = _cells.main_losses(run.only(self.cells(run)))
        data = self.results(run, _cells.with_holes(run.cells))
        other = opponent(data)
        groups = [group for _, group in data.groupby([*self.key], observed=True)]
        table = self.pruned(pd.DataFrame([self.row(g, other) for g in groups]).fillna(DASH), data)
        table.attrs["title"] = self.title_of(data)
        best = [
            (at, self.columns_of(g)[0].heading) for at, g in enumerate(groups) if any(g["best"])
        ]
        table.attrs["bold"] = [(at, heading) for at, heading in best if heading in table]
        words = caption(run, run.cells, self.shown)
        return Artefact(words, table, data=self.data(data), notes=NOTES)

    def columns_of(self, data: pd.DataFrame) -> Sequence[Column]:
        """The columns of the rows of a task."""
        return self.columns

    def results(self, run: Run, cells: pd.DataFrame) -> pd.DataFrame:
        """The result frame, also of a loss without any result."""
        data = result_frame(run, cells, [column.metric for column in self.columns])
        data = with_published(data, run, cells, self.published)
        if self.sourced:
            data["data"] = [data_source(run, str(task)) for task in data["task"]]
        return with_tests(data, run, self.compared())

    def compared(self) -> list[str]:
        """The metrics whose differences are shown, the main one first."""
        first, *others = self.columns
        return [first.metric, *(column.metric for column in others if column.delta)]

    def data(self, data: pd.DataFrame) -> pd.DataFrame:
        """The frame that is written beside the table: one row a cell, or a cell and metric."""
        if not self.wide:
            return data.drop(columns="address")
        data.attrs["published"] = [column.metric for column in self.columns if column.paper]
        return widened(data, self.compared(), *["data"] * self.sourced)

    def row(self, cells: pd.DataFrame, other: str) -> dict[str, str]:
        """The row of one model, task and loss, whose cells differ in their seed alone."""
        first, *_ = columns = self.columns_of(cells)
        row = {**head_of(cells)}
        if why := why_missing(cells):
            return {**row, first.heading: why}
        by = dict([*cells.groupby("metric", sort=False)])
        for column in columns:
            here = by[column.metric]
            row[column.heading] = estimate(here, column.digits, interval=column.interval)
            if column.delta or column is first:
                row[column.delta or delta(other)] = gain(here, column.digits)
            if column is first:
                row[P_HOLM] = corrected_p(here)
        main = by[first.metric]
        row |= {"n": f"{int(main['n'].iloc[0]):,}", "Seeds": str(len(main))}
        beside = {c.paper: by[c.metric] for c in columns if c.paper}
        return row | (beside_paper(beside) if beside else {})

    def pruned(self, table: pd.DataFrame, data: pd.DataFrame) -> pd.DataFrame:
        """The table without the columns that say nothing."""
        near = [c for c in self.columns if c.robust and _is_near(c, data)]
        table = table.drop(columns=[n for c in near for n in (c.heading, c.delta)], errors="ignore")
        unused = ["Task"] * int(self.is_of_one_task(data))
        unused += ["Data"] * int("data" in data and (data["data"] == UNKNOWN).all())
        table = without_paper(table.drop(columns=unused, errors="ignore"), data)
        return without_dashes(
            table, [n for n in table if n not in ("Params", "Paper", "Paper Acc")]
        )

    def is_of_one_task(self, data: pd.DataFrame) -> bool:
        """Whether the title can name the task in place of a column."""
        return len(self.tasks) < 2 and data["task"].nunique() == 1

    def title_of(self, data: pd.DataFrame) -> str:
        """The title, with the task where no column and no name of the table says it."""
        task = str(data["task"].iloc[0])
        said = self.is_of_one_task(data) and task not in self.tasks
        return f"{self.title}: {task}" if said else self.title


def _is_near(column: Column, data: pd.DataFrame) -> bool:
    """Whether a robust metric says what the metric beside it says."""
    values = data.pivot(index="address", columns="metric", values="value").astype("float64")
    return not (values[column.robust] > 2 * values[column.metric]).any()


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
        return _cells.why_no_row(self.cells(run), "cell of a task without a table")

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
        return {
            **head,
            heading: estimate(cells, 1, interval=True),
            delta(other): gain(cells),
            P_HOLM: corrected_p(cells),
            **beside_paper({"Paper": cells}),
            "n": f"{int(first['n']):,}",
            "Seeds": str(len(cells)),
        }


ELSEWHERE = ("arithmetic", "gsm8k", "svamp", "clock_time", "chartqa", "samsum")
"""Tasks with a table of their own."""
