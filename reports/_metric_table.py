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
from ._significance import bold_best, with_tests
from ._values import P_HOLM, beside_paper, corrected_p, delta, difference_to, estimate


@dataclass(frozen=True)
class Column:
    """A metric of a table.

    `interval`: the value has its interval. `paper`: the heading of its published value, if it has
    one. `meaning`: what the caption says of it.
    """

    metric: str
    heading: str
    digits: int = 1
    interval: bool = False
    paper: str = ""
    meaning: str = ""


@dataclass(frozen=True)
class MetricTable:
    """What a table of results declares, and how it is made of that.

    `published` is its key in `paper.yaml`, `unsaid` what the paper does not report of it. The
    difference stands after the column `difference_after`; empty: after the last metric. `examples`
    is what the title calls synthetic data; empty: the table does not name the source of its data.
    `key` tells the rows apart.
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
    difference_after: ClassVar[str] = ""
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
        return with_tests(data, opponent(data))

    def frame(self, data: pd.DataFrame) -> pd.DataFrame:
        """The rows as text, without the columns that say nothing."""
        other = opponent(data)
        groups = data.groupby([*self.key], observed=True)
        table = pd.DataFrame([self.row(group, other) for _, group in groups]).fillna(DASH)
        unused = [] if data["against_loss"].notna().any() else [delta(other), P_HOLM]
        unused += [c.heading for c in self.columns if data[f"{c.metric}_n"].isna().all()]
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
            if column.heading == (self.difference_after or columns[-1].heading):
                row |= {delta(other): difference_to(cells, other), P_HOLM: corrected_p(cells)}
        row |= {"n": f"{int(first[f'{columns[0].metric}_n']):,}", "Seeds": str(len(cells))}
        paper = self.published_columns()
        return row | (beside_paper(cells, paper) if paper else {})

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
        compared = bool(data["against_loss"].notna().any())
        return [
            _caption.spread_note(data),
            f"{delta(other)}: paired difference of {what} on the same examples." * compared,
            _caption.significance_note(data, other) if compared else "",
            _caption.paper_note(self.published, self.unsaid, what) if beside else "",
        ]


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
