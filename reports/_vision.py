"""What the tables of the vision tasks share: rows over seeds, and their captions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from smmd_bench.contracts import Artefact
from smmd_bench.publishing.style import loss_label
from smmd_bench.publishing.tables import DASH

from ._cells import (
    TO_PAPER,
    beside_paper,
    decoding,
    difference_to,
    estimate,
    measured,
    metrics_beside_published,
    missing_note,
    model_columns,
    opponent,
    why_missing,
    why_no_row,
    with_holes,
    without_paper,
)
from ._main_losses import main_losses
from ._paper import reference
from ._sample import sample_note
from ._setting import SYNTHETIC, UNKNOWN, data_source, setting_note
from ._significance import bold_best, significance_note, with_tests

if TYPE_CHECKING:
    from smmd_bench.contracts import Run


@dataclass(frozen=True)
class VisionTable:
    """What differs between the tables: task, table of `paper.yaml`, metrics and their columns.

    `columns` and `beside` give the heading of a metric, of ours and as published; `intervals` are
    the metrics shown with theirs.
    """

    task: str
    table: str
    columns: Mapping[str, str]
    intervals: Sequence[str]
    beside: Mapping[str, str]

    def cells(self, run: Run) -> pd.DataFrame:
        """The cells of the task, whatever their parameters and status."""
        return run.cells[run.cells["task_name"] == self.task]

    def skip(self, run: Run) -> str | None:
        """Why there is no row; None: there is one."""
        return why_no_row(self.cells(run), f"{self.task} cell")

    def artefact(self, run: Run, title: str, *, what: str, meaning: str) -> Artefact:
        """The table, its data, and a caption with `meaning`; `what` the pictures show."""
        run, left = main_losses(run.only(self.cells(run)))
        data, cells = self.data(run), run.cells
        table = self.frame(data)
        table.attrs["title"] = title_with_source(title, data, what)
        table.attrs["bold"] = bold_best(data, self.columns["exact_match"])
        notes = " ".join([decoding(run), meaning, *self.notes(run, data, cells)])
        caption = notes + setting_note(run, cells) + outside_note(run, cells) + left
        caption += missing_note(cells)
        return Artefact(caption=caption, table=table, data=data)

    def data(self, run: Run) -> pd.DataFrame:
        """One row a cell, with the source of its data; also for a loss without any result."""
        cells = with_holes(run.cells)
        data = metrics_beside_published(
            run, cells, tuple(self.columns), self.table, tuple(self.beside)
        )
        data["data"] = [data_source(run, str(task)) for task in data["task"]]
        return with_tests(data, opponent(data))

    def frame(self, data: pd.DataFrame) -> pd.DataFrame:
        """One row a model, task and loss; over several seeds mean ± standard deviation."""
        groups = data.groupby(["model", "task", "loss"], observed=True)
        other = opponent(data)
        table = pd.DataFrame([self._row(group, other) for _, group in groups]).fillna(DASH)
        unused = [
            *(["Task"] if data["task"].nunique() == 1 else []),
            *(["Data"] if (data["data"] == UNKNOWN).all() else []),
        ]
        return without_paper(table.drop(columns=unused), self.beside)

    def _row(self, cells: pd.DataFrame, other: str) -> dict[str, str]:
        first = cells.iloc[0]
        row = {
            **model_columns(first["model"], first["params"]),
            "Task": str(first["task"]),
            "Data": str(first["data"]),
            "Loss": loss_label(first["loss"]),
        }
        if why := why_missing(cells):
            return {**row, self.columns["exact_match"]: why}
        return {
            **row,
            **{
                name: estimate(cells, f"{metric}_", 1, interval=metric in self.intervals)
                for metric, name in self.columns.items()
            },
            **difference_to(cells, other),
            "n": f"{int(first['exact_match_n']):,}",
            "Seeds": str(len(cells)),
            **beside_paper(cells, self.beside),
        }

    def notes(self, run: Run, data: pd.DataFrame, cells: pd.DataFrame) -> list[str]:
        """Sentences on the sample, intervals, tests and the published values, or why none is."""
        found = measured(data)
        several = found.groupby(["model", "task", "loss"], observed=True).size().max() > 1
        other = opponent(data)
        notes = [
            sample_note(run, cells),
            "Brackets: 95 % intervals, percentile bootstrap over the n test examples.",
        ]
        if several:
            notes.append("±: standard deviation over training seeds.")
        notes.append(f"Δ to {loss_label(other)}: paired difference of Acc on the same examples.")
        notes.append(significance_note(other, several=several))
        if data["published_exact_match"].notna().any():
            where = reference(self.table)
            notes.append(f"Paper: {where}; its seeds are not reported. {TO_PAPER}: Acc minus that.")
        return notes


def title_with_source(title: str, data: pd.DataFrame, what: str) -> str:
    """The title of a table, which names synthetic data: `..., synthetic clocks`."""
    synthetic = data["data"] == SYNTHETIC
    if not synthetic.any():
        return title
    return f"{title}, {'' if synthetic.all() else 'in part '}{SYNTHETIC} {what}"


def outside_note(run: Run, cells: pd.DataFrame) -> str:
    """A sentence on digits that only cross-entropy sees; empty where there are none.

    At N = 1000 "05" is one token and no canonical integer, and so outside V_num.
    """
    shares: dict[str, float] = {}
    for address, model in zip(cells["address"], cells["model"], strict=True):
        receipt = run.current(str(address)).receipt or {}
        targets = receipt.get("numeric_targets") or {}
        if targets.get("outside"):
            shares[str(model)] = 100 * targets["outside"] / targets["digit_tokens"]
    if not shares:
        return ""
    found = ", ".join(f"{share:.1f} % with {model}" for model, share in shares.items())
    return f" Digit tokens of the training targets outside V_num: {found}."
