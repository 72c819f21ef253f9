"""Table 2 of the paper: arithmetic calculation results, each beside its published value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.publishing.style import loss_label
from smmd_bench.publishing.tables import DASH

from ._arithmetic import arithmetic_cells, title_with_levels
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
from ._setting import setting_note
from ._significance import bold_best, significance_note, with_tests

METRICS = ("exact_match", "mean_absolute_error", "r_squared", "parse_failure_rate")
DIGITS = {"exact_match": 1, "mean_absolute_error": 2, "r_squared": 2, "parse_failure_rate": 1}
PUBLISHED = {
    "exact_match": "Paper Acc",
    "mean_absolute_error": "Paper MAE",
    "r_squared": "Paper R²",
}


@dataclass(frozen=True)
class ArithmeticTable:
    """Accuracy, MAE and R² by model and loss, with intervals and the difference to CE."""

    name: ClassVar[str] = "arithmetic_table"
    title: ClassVar[str] = "Arithmetic calculation results"
    paper: ClassVar[str] = "Table 2"

    def skip(self, run: Run) -> str | None:
        """Without a measured arithmetic cell there is no row."""
        return why_no_row(arithmetic_cells(run), "arithmetic cell")

    def build(self, run: Run) -> Artefact:
        """One row a model, level and loss; over several seeds mean ± standard deviation."""
        run, left = main_losses(run.only(arithmetic_cells(run)))
        cells = run.cells
        data = metrics_beside_published(run, with_holes(cells), METRICS, "arithmetic", PUBLISHED)
        other = opponent(data)
        data = with_tests(data, other)
        groups = data.groupby(["model", "task", "loss"], observed=True)
        table = pd.DataFrame([_row(group, other) for _, group in groups]).fillna(DASH)
        if cells["task"].nunique() == 1:
            table = table.drop(columns="Task")
        table = without_paper(table, PUBLISHED)
        table.attrs["title"] = title_with_levels(self.title, cells)
        table.attrs["bold"] = bold_best(data, "Acc (%)")
        caption = _caption(run, data, cells) + setting_note(run, cells) + left
        return Artefact(caption=caption + missing_note(cells), table=table, data=data)


def _row(cells: pd.DataFrame, other: str) -> dict[str, str]:
    """The row of one (model, level, loss): its cells differ in their seed alone."""
    first = cells.iloc[0]
    row = {
        **model_columns(first["model"], first["params"]),
        "Task": first["task"],
        "Loss": loss_label(first["loss"]),
    }
    if why := why_missing(cells):
        return {**row, "Acc (%)": why}
    labels = ("Acc (%)", "MAE", "R²", "Parse fail (%)")
    for metric, label in zip(METRICS, labels, strict=True):
        interval = metric == "exact_match"
        row[label] = estimate(cells, f"{metric}_", DIGITS[metric], interval=interval)
    row |= difference_to(cells, other)
    row["n"] = f"{int(first['exact_match_n']):,}"
    row["Seeds"] = str(len(cells))
    return row | beside_paper(cells, PUBLISHED)


def _caption(run: Run, data: pd.DataFrame, cells: pd.DataFrame) -> str:
    several = measured(data).groupby(["model", "task", "loss"], observed=True).size().max() > 1
    other = opponent(data)
    parts = [
        decoding(run),
        "Acc is exact match by value; a completion without a number counts as wrong, and is left "
        "out of MAE and R², which a single wild completion can dominate.",
        sample_note(run, cells),
        "Brackets: 95 % intervals, percentile bootstrap over the n test examples.",
    ]
    if several:
        parts.append("±: standard deviation over training seeds.")
    parts.append(f"Δ to {loss_label(other)}: paired difference of Acc on the same examples.")
    parts.append(significance_note(other, several=several))
    if data["published_exact_match"].notna().any():
        where = reference("arithmetic")
        parts.append(f"Paper: {where}; its seeds are not reported. {TO_PAPER}: Acc minus that.")
    return " ".join(parts)
