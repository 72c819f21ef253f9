"""Table 1 of the paper: mathematical reasoning, GSM8K and SVAMP, beside the published values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._cells import REFERENCE
from ._metric_table import Column, MetricTable
from ._paper import published, reference
from ._values import model_columns

if TYPE_CHECKING:
    import pandas as pd

    from smmd_bench.contracts import Run


class MathTable(MetricTable):
    """Accuracy by our rule and lm-eval's two, by model, task and loss, with differences to CE."""

    name = "math_table"
    title = "Mathematical reasoning results"
    paper = "Table 1"
    tasks = ("gsm8k", "svamp")
    published = "math_reasoning"
    unsaid = "seeds, prompts or parser"
    difference_after = "Acc (%)"
    columns = (
        Column(
            "exact_match", "Acc (%)", interval=True, paper="Paper",
            meaning="Acc is exact match by value of the final answer; a completion without a "
            "number counts as wrong.",
        ),
        Column(
            "strict_match", "lm-eval strict",
            meaning="lm-eval strict and flexible are accuracies (%) by the two rules of lm-eval's "
            "gsm8k, which compare text (strict: after ####; flexible: the last number).",
        ),
        Column("flexible_match", "lm-eval flexible"),
        Column("parse_failure_rate", "Parse fail (%)"),
        Column("truncation_rate", "Cut off (%)"),
    )  # fmt: skip

    def notes(self, run: Run, data: pd.DataFrame) -> list[str]:
        """Also what the paper prints elsewhere for the same rows of cross-entropy."""
        rows = data[(data["loss"] == REFERENCE) & data["published_exact_match"].notna()]
        shown = rows[["model", "task"]].drop_duplicates().itertuples(index=False)
        return super().notes(run, data) + [printed_twice(str(m), str(task)) for m, task in shown]


def printed_twice(model: str, task: str) -> str:
    """What the paper prints elsewhere for cross-entropy, if that is another value; else empty."""
    here, ablation, counts = (
        published(table, model=model, task=task, loss=REFERENCE)
        for table in (MathTable.published, "ablation", "categories")
    )
    elsewhere = {}
    if ablation:
        elsewhere[reference("ablation")] = ablation["exact_match"]
    if counts:
        where = f"{reference('categories')}, which names no model"
        elsewhere[where] = 100 * counts["exact"] / counts["n"]
    others = [
        f"{value:.2f} in {where}"
        for where, value in elsewhere.items()
        if f"{value:.2f}" != f"{here['exact_match']:.2f}"
    ]
    name = " ".join(model_columns(model, None).values())
    return f"It prints CE on {task} with {name} also as {' and '.join(others)}." if others else ""
