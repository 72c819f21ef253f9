"""Table 2 of the paper: arithmetic calculation results, each beside its published value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from smmd_bench.contracts import Artefact
from smmd_bench.publishing.style import loss_label
from smmd_bench.publishing.tables import number
from smmd_bench.results.run import RunFrames

from ._arithmetic import arithmetic_cells, title_with_levels
from ._cells import (
    decoding,
    difference_and_opponent,
    estimate,
    measured,
    metrics_beside_published,
    missing_note,
    model_columns,
    why_no_row,
)
from ._paper import paper_model, reference
from ._significance import BOLD, bold_better

METRICS = ("exact_match", "mean_absolute_error", "r_squared", "parse_failure_rate")
DIGITS = {"exact_match": 1, "mean_absolute_error": 2, "r_squared": 2, "parse_failure_rate": 1}
PUBLISHED = {"exact_match": "Acc", "mean_absolute_error": "MAE", "r_squared": "R²"}


@dataclass(frozen=True)
class ArithmeticTable:
    """Accuracy, MAE and R² by model and loss, with intervals and the difference to CE."""

    name: ClassVar[str] = "arithmetic_table"
    title: ClassVar[str] = "Arithmetic calculation results"
    paper: ClassVar[str] = "Table 2"

    def skip(self, run: RunFrames) -> str | None:
        """Without a measured arithmetic cell there is no row."""
        return why_no_row(arithmetic_cells(run), "arithmetic cell")

    def build(self, run: RunFrames) -> Artefact:
        """One row a model, level and loss; over several seeds mean ± standard deviation."""
        cells = arithmetic_cells(run)
        data = metrics_beside_published(run, measured(cells), METRICS, "arithmetic", PUBLISHED)
        groups = data.groupby(["model", "task", "loss"], observed=True)
        table = pd.DataFrame([_row(group) for _, group in groups])
        if cells["task"].nunique() == 1:
            table = table.drop(columns="Task")
        if not data["published_exact_match"].notna().any():
            table = table.drop(columns=[f"Paper {name}" for name in PUBLISHED.values()])
        table.attrs["title"] = title_with_levels(self.title, cells)
        table.attrs["bold"] = bold_better(data, "Acc (%)")
        return Artefact(caption=_caption(run, data, cells), table=table, data=data)


def _row(cells: pd.DataFrame) -> dict[str, str]:
    """The row of one (model, level, loss): its cells differ in their seed alone."""
    first = cells.iloc[0]
    row = {
        **model_columns(first["model"], first["params"]),
        "Task": first["task"],
        "Loss": loss_label(first["loss"]),
    }
    labels = ("Acc (%)", "MAE", "R²", "Parse fail (%)")
    for metric, label in zip(METRICS, labels, strict=True):
        interval = metric == "exact_match"
        row[label] = estimate(cells, f"{metric}_", DIGITS[metric], interval=interval)
    row |= difference_and_opponent(cells, "Δ Acc")
    row["n"] = f"{int(first['exact_match_n']):,}"
    row["Seeds"] = str(len(cells))
    for metric, name in PUBLISHED.items():
        row[f"Paper {name}"] = number(first[f"published_{metric}"])
    return row


def _caption(run: RunFrames, data: pd.DataFrame, cells: pd.DataFrame) -> str:
    seeds = data.groupby(["model", "task", "loss"], observed=True).size().max()
    parts = [
        decoding(run),
        "Acc is exact match by value; a completion without a number counts as wrong, and is left "
        "out of MAE and R², which a single wild completion can dominate.",
        "Brackets: 95 % intervals, percentile bootstrap over the n test examples.",
    ]
    if seeds > 1:
        parts.append("±: standard deviation over training seeds.")
    parts.append(
        "Δ Acc: paired difference on the same examples to the row named under vs; "
        "p: McNemar's exact test"
        + (", one for each seed" if seeds > 1 else "")
        + ", not corrected."
    )
    parts.append(BOLD)
    if data["published_exact_match"].notna().any():
        parts.append(f"Paper: {reference('arithmetic')}; its seeds are not reported.")
    elif any(paper_model(str(model)) for model in cells["model"].unique()):
        parts.append("The paper's values are for its own level, and so are not shown here.")
    return " ".join(parts) + missing_note(cells)
