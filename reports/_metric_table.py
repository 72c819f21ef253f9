"""The table of metrics by model, task and loss: what `metric_tables` declares, this makes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd

from smmd_bench.contracts import Artefact, ReportSkippedError, Run
from smmd_bench.publishing.style import loss_label, task_label
from smmd_bench.publishing.tables import DASH, number
from smmd_bench.results.pairing import KEY, drop_short_variants

from . import _text
from ._paper import UNKNOWN, add_published, find_source
from ._results import (
    add_tests,
    explain_missing,
    find_opponent,
    join_results,
    select_measured,
    select_rows,
    to_wide,
)
from ._text import BEST, P_HOLM, TO_PAPER, describe_constants, name_difference


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
class RowGroup:
    """What a row is made from: the result frame's rows of a model, task and loss, and columns."""

    cells: pd.DataFrame
    columns: Sequence[Column]

    def select(self, column: Column) -> pd.DataFrame:
        """The rows of a column's metric, one a seed."""
        return select_rows(self.cells, metric=column.metric)


@dataclass(frozen=True)
class MetricTable:
    """What a table of results declares: `published` is its key in `paper.yaml`, the first column is
    compared, and `sourced` adds the source of the data."""

    name: ClassVar[str]
    title: ClassVar[str]
    paper: ClassVar[str]
    order = 10
    tasks: ClassVar[tuple[str, ...]] = ()
    columns: ClassVar[tuple[Column, ...]] = ()
    published = ""
    sourced: ClassVar[bool] = False
    caption_text: ClassVar[str]

    def cells(self, run: Run) -> pd.DataFrame:
        """The cells of the tasks, whatever their parameters and status."""
        return run.cells[run.cells["task_name"].isin(self.tasks)]

    def build(self, run: Run) -> Artefact:
        """One row a model, task and loss; over several seeds mean ± standard deviation."""
        cells = self.cells(run)
        if select_measured(cells).empty:
            tasks = " or ".join(self.tasks) or "a task without a table of its own"
            raise ReportSkippedError(f"the run has no results of {tasks}")

        # Beside whole losses a variant with fewer seeds would be compared over other seeds.
        run = drop_short_variants(run.only(cells))
        data = self.results(run, _select_cells(run))

        # A row and its columns belong together: tasks of one table may have other metrics.
        other = find_opponent(data)
        groups = self._row_groups(data, other)
        rows = [self.row(group, other) for group in groups]
        table = self.prune(pd.DataFrame(rows).fillna(DASH), data)
        table = self._titles(table, data, groups)
        table.attrs |= {
            "bold": self._mark_best(table, groups),
            "bold_means": BEST,
            "optional": _order_optional(table),
        }

        warnings = [describe_constants(run), _text.describe_noise_floor(data, other)]
        numbers = self._data_frame(data)
        return _text.make_artefact(
            run,
            run.cells,
            self.caption_text,
            " ".join(filter(None, warnings)),
            table=table,
            data=numbers,
        )

    def results(self, run: Run, cells: pd.DataFrame) -> pd.DataFrame:
        """The result frame, also of a loss without any result."""
        metrics = [column.metric for column in self.columns]
        data = join_results(run, cells, metrics)
        data = add_published(data, run, cells, self.published)

        # Every row of the frame has the source, which the data of the table keeps.
        if self.sourced:
            data["data"] = [find_source(run, str(task)) for task in data["task"]]
        return add_tests(data, run, self.compared_metrics())

    def compared_metrics(self) -> list[str]:
        """The metrics whose differences are shown, the main one first."""
        first, *further = self.columns
        return [first.metric, *(column.metric for column in further if column.delta)]

    def choose_columns(self, data: pd.DataFrame, other: str) -> Sequence[Column]:
        """The columns of the rows of a task, whose losses are compared with `other`."""
        return self.columns

    def _row_groups(self, data: pd.DataFrame, other: str) -> list[RowGroup]:
        """What each row of the table is made from, in order."""
        groups = []
        for _, cells in data.groupby(KEY):
            columns = self.choose_columns(cells, other)
            groups.append(RowGroup(cells, columns))
        return groups

    def row(self, group: RowGroup, other: str) -> dict[str, str]:
        """The row of one model, task and loss, whose cells differ in their seed alone."""
        row = self._row_head(group.cells.iloc[0])
        first = group.columns[0]
        # The reason stands where a reader looks for the value.
        if why := explain_missing(group.cells):
            return {**row, first.heading: why}

        for column in group.columns:
            cells = group.select(column)
            row[column.heading] = _text.format_estimate(
                cells, column.digits, interval=column.interval
            )

            # The main metric is always compared, and it alone is tested: one p-value a loss.
            if column.delta or column is first:
                heading = column.delta or name_difference(other)
                row[heading] = _text.format_gain(cells, column.digits)
            if column is first:
                row[P_HOLM] = _text.format_p(cells["gain_p"].iloc[0])

        # A metric of readable answers alone has a smaller n: the row's is that of its main metric.
        cells = group.select(first)
        row["n"] = f"{int(cells['n'].iloc[0]):,}"
        row["Seeds"] = str(len(cells))
        return row | self._published_values(group)

    def _row_head(self, cell: pd.Series[Any]) -> dict[str, str]:
        head = _text.describe_model(str(cell["model"]), cell["params"])
        head["Task"] = task_label(str(cell["task"]))
        if self.sourced:
            head["Data"] = str(cell["data"])
        head["Loss"] = loss_label(str(cell["loss"]))
        return head

    def _published_values(self, group: RowGroup) -> dict[str, str]:
        """The paper's values, or in place of the first what of the setting is another."""
        values = {}
        for column in group.columns:
            if column.paper:
                values[column.paper] = number(group.select(column)["published"].iloc[0])

        first = group.columns[0]
        cells = group.select(first)
        if not first.paper:
            return values

        # A hole of unknown cause would be read as one of the paper's.
        if cells["published"].isna().iloc[0]:
            values[first.paper] = cells["other_setting"].iloc[0] or DASH
        values[TO_PAPER] = number(cells["against_published"].mean(), 1, sign=True)
        return values

    def prune(self, table: pd.DataFrame, data: pd.DataFrame) -> pd.DataFrame:
        """The table without the columns that say nothing."""
        table = _place_sizes(self._drop_robust(table, data))
        table = self._drop_constant(table, data)
        table = _merge_unpublished(table, data)

        # Params and one column of the paper stay with dashes alone: they say that nothing is known.
        papers = [name for name in table if str(name).startswith("Paper")]
        stay = ("Params", *papers[:1])
        return _text.drop_dashes(table, [name for name in table if name not in stay])

    def _drop_robust(self, table: pd.DataFrame, data: pd.DataFrame) -> pd.DataFrame:
        """Without a robust error that says the same as the usual one in every cell."""
        # Where the mean is twice as large, a few errors carry it, and the robust one is needed.
        values = data.pivot(index="address", columns="metric", values="value")
        values = values.astype("float64")
        for column in self.columns:
            if not column.robust:
                continue

            has_outliers = values[column.robust] > 2 * values[column.metric]
            if not has_outliers.any():
                names = [column.heading, column.delta]
                table = table.drop(columns=names, errors="ignore")
        return table

    def _drop_constant(self, table: pd.DataFrame, data: pd.DataFrame) -> pd.DataFrame:
        """Without the task, where the title says it, and without sources that are not known."""
        # A table of several tasks keeps the column, so that tables of several runs are alike.
        if len(self.tasks) < 2 and data["task"].nunique() == 1:
            table = table.drop(columns="Task")
        if self.sourced and (data["data"] == UNKNOWN).all():
            table = table.drop(columns="Data")
        return table

    def _titles(
        self, table: pd.DataFrame, data: pd.DataFrame, groups: Sequence[RowGroup]
    ) -> pd.DataFrame:
        """The table with its title, and headings that say which differences have a smaller n."""
        task = str(data["task"].iloc[0])
        is_named = "Task" in table or task in self.tasks
        title = self.title if is_named else f"{self.title}: {task_label(task)}"
        table.attrs["title"] = title

        # Some completions have no number, and a difference of errors needs one on both sides.
        most_examples = data.groupby("address")["n"].transform("max")
        partial_metrics = {*data.loc[data["n"] < most_examples, "metric"]}

        headings = {}
        for group in groups:
            for column in group.columns:
                if column.metric in partial_metrics:
                    headings[column.delta] = f"{column.delta} where both answer"
        return table.rename(columns=headings)

    def _mark_best(
        self, table: pd.DataFrame, groups: Sequence[RowGroup]
    ) -> list[tuple[int, str]]:
        """The cells to print in bold: row and heading of the losses that are best."""
        bold = []
        for position, group in enumerate(groups):
            heading = group.columns[0].heading
            if group.cells["best"].any() and heading in table:
                bold.append((position, heading))
        return bold

    def _data_frame(self, data: pd.DataFrame) -> pd.DataFrame:
        """The numbers behind the table: one row a cell, where all rows have the same metrics."""
        if not self.columns:
            return data.drop(columns="address")

        # One row a cell is what people load into other tools.
        published = [column.metric for column in self.columns if column.paper]
        data.attrs["published"] = published
        source = ["data"] if self.sourced else []
        return to_wide(data, self.compared_metrics(), *source)


def _order_optional(table: pd.DataFrame) -> list[str]:
    """The columns that a narrow terminal leaves out, the least important first: what the caption
    says, too, then all behind the test of the main metric, from the last on."""
    said_below = ["Params", "n", "Seeds"]
    names = [str(name) for name in table]
    # Of losses without a result no test is known.
    behind = names[names.index(P_HOLM) + 1 :] if P_HOLM in names else []
    return [*said_below, *(n for n in reversed(behind) if n not in said_below)]


def _select_cells(run: Run) -> pd.DataFrame:
    """The cells that a row is made from: those with a result, and all of a loss without any."""
    # A failed seed beside others is in the caption; a loss without any seed needs a row to be seen.
    is_done = run.cells["status"] == "done"
    keys = [run.cells[name] for name in KEY]
    has_result = is_done.groupby(keys).transform("any")
    return run.cells[is_done | ~has_result]


def _place_sizes(table: pd.DataFrame) -> pd.DataFrame:
    """With n beside the loss where rows differ in it: a terminal has room for the first columns."""
    if len({*table["n"]} - {DASH}) < 2:
        return table
    names = [name for name in table if name != "n"]
    names.insert(names.index("Loss") + 1, "n")
    return table[names]


def _merge_unpublished(table: pd.DataFrame, data: pd.DataFrame) -> pd.DataFrame:
    """With a single column of the paper, which says why, where no row has a published value."""
    papers = [name for name in table if str(name).startswith("Paper")]
    if not papers or data["published"].notna().any():
        return table
    reasons = table[papers[0]]
    return table.drop(columns=[*papers, TO_PAPER]).assign(Paper=reasons)
