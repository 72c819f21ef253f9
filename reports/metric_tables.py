"""Tables 1 to 4 and 11 of the paper, and the results of tasks without one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.publishing.style import loss_label
from smmd_bench.publishing.tables import DASH, number
from smmd_bench.results.verdict import KEY, judged_metrics, main_losses
from smmd_bench.scoring.decoding_rules import GREEDY, split_rule

from . import _text
from ._cells import measured, metric_labels, opponent, why_missing
from ._constants import describe_constants
from ._paper import UNKNOWN, data_source, with_published
from ._results import EXACT, result_frame, to_wide, with_tests
from ._text import P_HOLM, TO_PAPER, delta, notes_of


@dataclass(frozen=True)
class Column:
    """A metric of a table: `paper` and `delta` are headings of its published value and difference,
    `robust` is the metric that must be twice as large in a cell for this one to be shown."""

    metric: str
    heading: str
    digits: int = 1
    interval: bool = False
    paper: str = ""
    delta: str = ""
    robust: str = ""


@dataclass(frozen=True)
class MetricTable:
    """What a table of results declares: `published` is its key in `paper.yaml`, the first column is
    compared, and `sourced` adds the source of the data."""

    name: ClassVar[str]
    title: ClassVar[str]
    paper: ClassVar[str]
    order: ClassVar[int] = 10
    tasks: ClassVar[tuple[str, ...]] = ()
    columns: ClassVar[tuple[Column, ...]] = ()
    published: ClassVar[str] = ""
    sourced: ClassVar[bool] = False
    shown: ClassVar[str]

    def cells(self, run: Run) -> pd.DataFrame:
        """The cells of the tasks, whatever their parameters and status."""
        return run.cells[run.cells["task_name"].isin(self.tasks)]

    def skip(self, run: Run) -> str | None:
        """Without a measured cell of these tasks there is no row."""
        tasks = " or ".join(self.tasks) or "a task without a table of its own"
        none = measured(self.cells(run)).empty
        return f"the run has no results of {tasks}" if none else None

    def build(self, run: Run) -> Artefact:
        """One row a model, task and loss; over several seeds mean ± standard deviation."""
        run = main_losses(run.only(self.cells(run)))
        done = run.cells["status"] == "done"
        lost = ~done.groupby([run.cells[n] for n in KEY], observed=True).transform("any")
        data = self.results(run, run.cells[done | lost])
        groups, other = [group for _, group in data.groupby(KEY, observed=True)], opponent(data)
        columns = [self.columns_of(group, other) for group in groups]
        pairs = zip(groups, columns, strict=True)
        rows = [self.row(group, own, other) for group, own in pairs]
        table = self.pruned(pd.DataFrame(rows).fillna(DASH), data)
        task = str(data["task"].iloc[0])
        said = "Task" in table or task in self.tasks
        table.attrs["title"] = self.title if said else f"{self.title}: {task}"
        fewer = {*data.loc[data["n"] < data.groupby("address")["n"].transform("max"), "metric"]}
        partial = {c.delta for own in columns for c in own if c.metric in fewer}
        table = table.rename(columns={name: f"{name} where both answer" for name in partial})
        best = [(at, columns[at][0]) for at, group in enumerate(groups) if any(group["best"])]
        table.attrs["bold"] = [(at, c.heading) for at, c in best if c.heading in table]
        data.attrs["published"] = [column.metric for column in self.columns if column.paper]
        cells = data.drop(columns="address")
        if self.columns:
            cells = to_wide(data, self.compared(), *["data"] * self.sourced)
        words = _text.caption(run, run.cells, self.shown, describe_constants(run, run.cells))
        return Artefact(words, table, data=cells, notes=notes_of(table))

    def columns_of(self, data: pd.DataFrame, other: str) -> Sequence[Column]:
        """The columns of the rows of a task, whose losses are compared with `other`."""
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

    def row(self, cells: pd.DataFrame, columns: Sequence[Column], other: str) -> dict[str, str]:
        """The row of one model, task and loss, whose cells differ in their seed alone."""
        first = columns[0]
        head = cells.iloc[0].to_dict()
        row = {
            **_text.model_columns(str(head["model"]), head["params"]),
            "Task": str(head["task"]),
            **({"Data": str(head["data"])} if self.sourced else {}),
            "Loss": loss_label(str(head["loss"])),
        }
        if why := why_missing(cells):
            return {**row, first.heading: why}
        by = dict([*cells.groupby("metric", sort=False)])
        for column in columns:
            here = by[column.metric]
            row[column.heading] = _text.estimate(here, column.digits, interval=column.interval)
            if column.delta or column is first:
                row[column.delta or delta(other)] = _text.gain(here, column.digits)
            if column is first:
                row[P_HOLM] = _text.p_text(here["gain_p"].iloc[0])
        main = by[first.metric]
        row |= {"n": f"{int(main['n'].iloc[0]):,}", "Seeds": str(len(main))}
        beside = {c.paper: by[c.metric] for c in columns if c.paper}
        row |= {heading: number(here["published"].iloc[0]) for heading, here in beside.items()}
        if first.paper:
            if main["published"].isna().iloc[0]:
                row[first.paper] = main["other_setting"].iloc[0] or DASH
            row[TO_PAPER] = number(main["against_published"].mean(), 1, sign=True)
        return row

    def pruned(self, table: pd.DataFrame, data: pd.DataFrame) -> pd.DataFrame:
        """The table without the columns that say nothing."""
        wide = data.pivot(index="address", columns="metric", values="value").astype("float64")
        robust = [c for c in self.columns if c.robust]
        near = [c for c in robust if not (wide[c.robust] > 2 * wide[c.metric]).any()]
        table = table.drop(columns=[n for c in near for n in (c.heading, c.delta)], errors="ignore")
        unused = ["Task"] * int(len(self.tasks) < 2 and data["task"].nunique() == 1)
        unused += ["Data"] * int("data" in data and (data["data"] == UNKNOWN).all())
        table = table.drop(columns=unused, errors="ignore")
        papers = [name for name in table if str(name).startswith("Paper")]
        if papers and data["published"].isna().all():  # a single column says why
            table = table.drop(columns=[*papers, TO_PAPER]).assign(Paper=table[papers[0]])
        stay = ("Params", *papers[:1], "Paper")
        return _text.without_dashes(table, [name for name in table if name not in stay])


ACCURACY = Column(EXACT, "Acc (%)", interval=True, paper="Paper Acc")
ROBUST = Column(
    "trimmed_absolute_error", "MAE of 90 %", 2, delta="Δ of 90 %", robust="mean_absolute_error"
)
UNREADABLE = Column("parse_failure_rate", "Parse fail (%)")
ELSEWHERE = ("arithmetic", "gsm8k", "svamp", "clock_time", "chartqa", "samsum")


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
        Column("mean_absolute_error", "MAE", digits=2, delta="Δ MAE"),
        ROBUST,
        UNREADABLE,
        Column("truncation_rate", "Cut off (%)"),
    )
    shown = (
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
        Column("mean_absolute_error", "MAE", digits=2, paper="Paper MAE", delta="Δ MAE"),
        ROBUST,
        Column("r_squared", "R²", digits=2, paper="Paper R²", delta="Δ R²"),
        UNREADABLE,
    )
    shown = (
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
        Column("time_gap_wrapped", "12-h gap (min)", delta="Δ 12-h gap"),
        Column("parse_failure_rate", "Invalid (%)"),
    )
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
        "Acc: exact match by value, where no number is wrong. Relaxed: within 5 % of the truth; "
        'lm-eval relaxed: the same as lm-eval reads numbers (not "~5").'
    )


class TaskTable(MetricTable):
    """All metrics by model, task and loss, with the difference to CE of the task's first one."""

    name = "task_table"
    title = "Results"
    paper = "not in the paper"
    shown = (
        "Every metric of the tasks without a table of the paper's; the first selects the epoch. "
        "A completion without an answer is wrong, and in no metric of the error."
    )

    def cells(self, run: Run) -> pd.DataFrame:
        """The cells of tasks without a table of their own."""
        return run.cells[~run.cells["task_name"].isin(ELSEWHERE)]

    def results(self, run: Run, cells: pd.DataFrame) -> pd.DataFrame:
        """One row a cell and metric that its task has, greedily decoded."""
        parts = []
        for _, of_task in cells.groupby("task", observed=True):
            found = run.metrics.loc[run.metrics["address"].isin(of_task["address"]), "metric"]
            greedy = [name for name in found.unique() if split_rule(str(name))[1] == GREEDY]
            parts.append(result_frame(run, of_task, greedy or [EXACT]))
        data = pd.concat(parts, ignore_index=True)
        return with_tests(data, run, [*data["metric"].unique()])

    def columns_of(self, data: pd.DataFrame, other: str) -> Sequence[Column]:
        """The metrics of these rows, by the names that their task gives them."""
        task = str(data["task"].iloc[0])
        labels = metric_labels(task)
        names, found = [str(metric) for metric in data["metric"].unique()], []
        judged = {names[0], *(metric.name for metric in judged_metrics(task))}
        for name in names:
            heading = labels.get(name, name.replace("_", " ").capitalize())
            difference = delta(other).replace("Δ", f"Δ {heading.partition(' (')[0]}")
            said, digits = difference * (name in judged), 1 if heading.endswith("(%)") else 2
            found.append(Column(name, heading, digits, name == names[0], delta=said))
        return found


class SamsumTable(MetricTable):
    """ROUGE-1, ROUGE-2 and ROUGE-L by model and loss, with differences to CE."""

    name = "samsum_table"
    title = "SAMSum dialogue summarization"
    paper = "Table 11"
    tasks = ("samsum",)
    published = "samsum"
    columns = tuple(
        Column(f"rouge{k}", f"ROUGE-{k}", 1, True, f"Paper R-{k}", f"Δ R-{k}") for k in "12L"
    )
    shown = (
        "ROUGE F1 × 100 of the first paragraph against the one reference, words stemmed. Few "
        "supervised tokens of a summary are numeric; on all others every loss is cross-entropy."
    )
