"""Tables of results: a row a model, task and loss, each metric beside its published value.

A table declares its columns; its rows are pivots of the result frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.publishing.tables import DASH

from . import _cells
from ._cells import KEY, opponent, why_missing
from ._paper import UNKNOWN, data_source, with_published
from ._results import result_frame, widened, with_tests
from ._text import (
    NOTES,
    P_HOLM,
    TO_PAPER,
    beside_paper,
    caption,
    delta,
    estimate,
    gain,
    head_of,
    p_text,
    without_dashes,
)


@dataclass(frozen=True)
class Column:
    """A metric of a table.

    `interval`: the value has its interval. `paper`, `delta`: the headings of its published value
    and of its difference, if it has them. `robust`: the metric that must be more than twice as
    large in a cell for this one to be shown.
    """

    metric: str
    heading: str
    digits: int = 1
    interval: bool = False
    paper: str = ""
    delta: str = ""
    robust: str = ""


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
        done = run.cells["status"] == "done"
        lost = ~done.groupby([run.cells[n] for n in KEY], observed=True).transform("any")
        data = self.results(run, run.cells[done | lost])
        other = opponent(data)
        groups = [group for _, group in data.groupby([*self.key], observed=True)]
        table = self.pruned(pd.DataFrame([self.row(g, other) for g in groups]).fillna(DASH), data)
        task = str(data["task"].iloc[0])
        unsaid = "Task" not in table and task not in self.tasks
        table.attrs["title"] = f"{self.title}: {task}" if unsaid else self.title
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
                row[P_HOLM] = p_text(here["gain_p"].iloc[0])
        main = by[first.metric]
        row |= {"n": f"{int(main['n'].iloc[0]):,}", "Seeds": str(len(main))}
        beside = {c.paper: by[c.metric] for c in columns if c.paper}
        return row | (beside_paper(beside) if beside else {})

    def pruned(self, table: pd.DataFrame, data: pd.DataFrame) -> pd.DataFrame:
        """The table without the columns that say nothing."""
        near = [c for c in self.columns if c.robust and _is_near(c, data)]
        table = table.drop(columns=[n for c in near for n in (c.heading, c.delta)], errors="ignore")
        unused = ["Task"] * int(len(self.tasks) < 2 and data["task"].nunique() == 1)
        unused += ["Data"] * int("data" in data and (data["data"] == UNKNOWN).all())
        table = table.drop(columns=unused, errors="ignore")
        papers = [name for name in table if str(name).startswith("Paper")]
        if papers and data["published"].isna().all():  # a single column says why
            table = table.drop(columns=[*papers, TO_PAPER]).assign(Paper=table[papers[0]])
        return without_dashes(
            table, [n for n in table if n not in ("Params", *papers[:1], "Paper")]
        )


def _is_near(column: Column, data: pd.DataFrame) -> bool:
    """Whether a robust metric says what the metric beside it says."""
    values = data.pivot(index="address", columns="metric", values="value").astype("float64")
    return not (values[column.robust] > 2 * values[column.metric]).any()
