"""Tables of results: one row a model, task and loss, each metric beside its published value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.publishing.style import loss_label
from smmd_bench.publishing.tables import DASH

from . import _caption, _cells, _values
from ._cells import opponent
from ._setting import SYNTHETIC, UNKNOWN, data_source, setting_note
from ._significance import bold_best
from ._values import P_HOLM, beside_paper, corrected_p, delta, estimate, gain
from ._verdicts import with_tests


@dataclass(frozen=True)
class Column:
    """A metric of a table.

    `interval`: the value has its interval. `paper`: the heading of its published value, if it has
    one. `meaning`: what the caption says of it. `delta`: the heading of its difference, if it has a
    column besides the first metric's. `robust`: the metric in whose place it can be read; it is
    shown where that is more than twice as large in a cell.
    """

    metric: str
    heading: str
    digits: int = 1
    interval: bool = False
    paper: str = ""
    meaning: str = ""
    delta: str = ""
    robust: str = ""


@dataclass(frozen=True)
class MetricTable:
    """What a table of results declares, and how it is made of that.

    `published` is its key in `paper.yaml`, `unsaid` what the paper does not report of it. The first
    column is the one that losses are compared by. `examples` is what the title calls synthetic
    data; empty: the table does not name the source of its data. `key` tells the rows apart.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    paper: ClassVar[str]
    order: ClassVar[int]
    tasks: ClassVar[tuple[str, ...]] = ()
    meaning: ClassVar[str] = ""
    columns: ClassVar[tuple[Column, ...]] = ()
    published: ClassVar[str] = ""
    unsaid: ClassVar[str] = "seeds"
    examples: ClassVar[str] = ""
    key: ClassVar[tuple[str, ...]] = ("model", "task", "loss")

    def cells(self, run: Run) -> pd.DataFrame:
        """The cells of the tasks, whatever their parameters and status."""
        return run.cells[run.cells["task_name"].isin(self.tasks)]

    def skip(self, run: Run) -> str | None:
        """Without a measured cell of these tasks there is no row."""
        return _cells.why_no_row(self.cells(run), f"cell of {' or '.join(self.tasks)}")

    def build(self, run: Run) -> Artefact:
        """One row a model, task and loss; over several seeds mean ± standard deviation."""
        run, left = _cells.main_losses(run.only(self.cells(run)))
        data = self.scores(run, _cells.with_holes(run.cells))
        table = self.frame(data)
        table.attrs |= self.attributes(run, data)
        meanings = [column.meaning for column in self.columns if column.heading in table]
        shown = _caption.join_sentences(self.meaning, *meanings)
        why = setting_note(run, run.cells) if self.published else ""
        notes = [_caption.decoding_note(run), *self.notes(run, data), _caption.outside_note(run)]
        words = _caption.write_caption(run, run.cells, shown, *notes, why, left)
        return Artefact(table=table, data=data, **words)

    def scores(self, run: Run, cells: pd.DataFrame) -> pd.DataFrame:
        """One row a cell, in full precision; also for a loss without any result."""
        metrics = [column.metric for column in self.columns]
        beside = [column.metric for column in self.columns if column.paper]
        data = _cells.metrics_beside_published(run, cells, metrics, self.published, beside)
        if self.examples:
            data["data"] = [data_source(run, str(task)) for task in data["task"]]
        return with_tests(data, run.only(cells), [c.metric for c in self.compared()])

    def frame(self, data: pd.DataFrame) -> pd.DataFrame:
        """The rows as text, without the columns that say nothing."""
        other = opponent(data)
        groups = data.groupby([*self.key], observed=True)
        table = pd.DataFrame([self.row(group, other) for _, group in groups]).fillna(DASH)
        tested = [delta(other), P_HOLM, *(column.delta for column in self.columns)]
        unused = [name for name in tested if name in table and (table[name] == DASH).all()]
        empty = [c for c in self.columns if data[f"{c.metric}_n"].isna().all()]
        hidden = [*empty, *(c for c in self.columns if c.robust and _is_near(c, data))]
        unused += [name for c in hidden for name in (c.heading, c.delta)]
        if len(self.tasks) == data["task"].nunique() == 1:
            unused.append("Task")
        if self.examples and (data["data"] == UNKNOWN).all():
            unused.append("Data")
        return _values.without_paper(
            table.drop(columns=unused, errors="ignore"), data, self.published_columns()
        )

    def row(self, cells: pd.DataFrame, other: str) -> dict[str, str]:
        """The row of one model, task and loss, whose cells differ in their seed alone."""
        first, columns = cells.iloc[0], self.columns
        row = head_of(cells)
        if why := _cells.why_missing(cells):
            return {**row, columns[0].heading: why}
        for column in columns:
            prefix = f"{column.metric}_"
            row[column.heading] = estimate(cells, prefix, column.digits, interval=column.interval)
            if column.delta:
                row[column.delta] = gain(cells, f"{column.metric}_", column.digits)
            if column is columns[0]:
                main = f"{columns[0].metric}_"
                row |= {delta(other): gain(cells, main), P_HOLM: corrected_p(cells, main)}
        row |= {"n": f"{int(first[f'{columns[0].metric}_n']):,}", "Seeds": str(len(cells))}
        paper = self.published_columns()
        return row | (beside_paper(cells, paper) if paper else {})

    def compared(self) -> list[Column]:
        """The columns whose differences are shown, the main one first."""
        return [self.columns[0], *(column for column in self.columns if column.delta)]

    def published_columns(self) -> dict[str, str]:
        """The columns of `scores` with published values, and their headings."""
        return {f"published_{c.metric}": c.paper for c in self.columns if c.paper}

    def attributes(self, run: Run, data: pd.DataFrame) -> dict[str, Any]:
        """Title and bold cells."""
        title = title_with_source(self.title, data, self.examples) if self.examples else self.title
        return {"title": title, "bold": bold_best(data, self.columns[0].heading)}

    def notes(self, run: Run, data: pd.DataFrame) -> list[str]:
        """Sentences on intervals, tests and published values."""
        other, main = opponent(data), self.columns[0]
        beside = data[f"published_{main.metric}"].notna().any()
        what = main.heading.partition(" (")[0]
        compared = bool(data[f"{main.metric}_gain"].notna().any())
        return [
            _caption.spread_note(data),
            f"{delta(other)}: paired difference of {what} on the same examples." * compared,
            _caption.significance_note(data, other) if compared else "",
            _caption.noise_note(data, other),
            _caption.paper_note(self.published, self.unsaid, what) if beside else "",
        ]


def _is_near(column: Column, data: pd.DataFrame) -> bool:
    """Whether a robust metric says what the metric beside it says."""
    other = data[f"{column.robust}_value"].astype("float64")
    return not (other > 2 * data[f"{column.metric}_value"].astype("float64")).any()


def head_of(cells: pd.DataFrame) -> dict[str, str]:
    """What a row is of: its model, task, source of data (if the frame has it) and loss."""
    first = cells.iloc[0]
    head = _values.model_columns(first["model"], first["params"]) | {"Task": str(first["task"])}
    head |= {"Data": str(first["data"])} if "data" in cells else {}
    return {**head, "Loss": loss_label(first["loss"])}


def title_with_source(title: str, data: pd.DataFrame, examples: str) -> str:
    """The title of a table, which names synthetic data: `..., synthetic clocks`."""
    synthetic = data["data"] == SYNTHETIC
    if not synthetic.any():
        return title
    return f"{title}, {'' if synthetic.all() else 'in part '}{SYNTHETIC} {examples}"
