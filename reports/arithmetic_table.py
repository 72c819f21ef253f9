"""Table 2 of the paper: arithmetic calculation results, each beside its published value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._arithmetic import title_with_levels
from ._metric_table import Column, MetricTable

if TYPE_CHECKING:
    import pandas as pd

    from smmd_bench.contracts import Run


class ArithmeticTable(MetricTable):
    """Accuracy, MAE and R² by model and loss, with intervals and the difference to CE."""

    name = "arithmetic_table"
    title = "Arithmetic calculation results"
    paper = "Table 2"
    tasks = ("arithmetic",)
    published = "arithmetic"
    columns = (
        Column(
            "exact_match", "Acc (%)", interval=True, paper="Paper Acc",
            meaning="Acc is exact match by value; a completion without a number counts as wrong.",
        ),
        Column(
            "mean_absolute_error", "MAE", digits=2, paper="Paper MAE",
            meaning="MAE and R² leave it out; a single wild completion can dominate them.",
        ),
        Column("r_squared", "R²", digits=2, paper="Paper R²"),
        Column("parse_failure_rate", "Parse fail (%)"),
    )  # fmt: skip

    def attributes(self, run: Run, data: pd.DataFrame) -> dict[str, Any]:
        """Its title names a level that is not the paper's."""
        title = title_with_levels(self.title, run.cells)
        return {**super().attributes(run, data), "title": title}
