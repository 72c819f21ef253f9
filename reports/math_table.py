"""Table 1 of the paper: mathematical reasoning, GSM8K and SVAMP, beside the published values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.publishing.style import loss_label
from smmd_bench.publishing.tables import DASH

from ._cells import (
    REFERENCE,
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
from ._paper import published, reference
from ._sample import sample_note
from ._setting import setting_note
from ._significance import bold_best, significance_note, with_tests

TABLE, TASKS = "math_reasoning", ("gsm8k", "svamp")
COLUMNS = {
    "exact_match": "Acc (%)",
    "strict_match": "lm-eval strict",
    "flexible_match": "lm-eval flexible",
    "parse_failure_rate": "Parse fail (%)",
    "truncation_rate": "Cut off (%)",
}
PUBLISHED = {"exact_match": "Paper"}


@dataclass(frozen=True)
class MathTable:
    """Accuracy by our rule and lm-eval's two, by model, task and loss, with differences to CE."""

    name: ClassVar[str] = "math_table"
    title: ClassVar[str] = "Mathematical reasoning results"
    paper: ClassVar[str] = "Table 1"

    def skip(self, run: Run) -> str | None:
        """Without a measured cell of GSM8K or SVAMP there is no row."""
        return why_no_row(_math_cells(run), "cell of gsm8k or svamp")

    def build(self, run: Run) -> Artefact:
        """One row a model, task and loss; over several seeds mean ± standard deviation."""
        run, left = main_losses(run.only(_math_cells(run)))
        cells = run.cells
        data = metrics_beside_published(run, with_holes(cells), tuple(COLUMNS), TABLE, PUBLISHED)
        other = opponent(data)
        data = with_tests(data, other)
        groups = data.groupby(["model", "task", "loss"], observed=True)
        table = pd.DataFrame([_row(group, other) for _, group in groups]).fillna(DASH)
        for metric in ("strict_match", "flexible_match"):
            if data[f"{metric}_value"].isna().all():
                table = table.drop(columns=COLUMNS[metric])
        table = without_paper(table, PUBLISHED)
        table.attrs["title"] = self.title
        table.attrs["bold"] = bold_best(data, COLUMNS["exact_match"])
        caption = _caption(run, data, cells) + setting_note(run, cells) + left
        return Artefact(caption=caption + missing_note(cells), table=table, data=data)


def _math_cells(run: Run) -> pd.DataFrame:
    return run.cells[run.cells["task_name"].isin(TASKS)]


def _row(cells: pd.DataFrame, other: str) -> dict[str, str]:
    """The row of one (model, task, loss): its cells differ in their seed alone."""
    first = cells.iloc[0]
    row = model_columns(first["model"], first["params"])
    row |= {"Task": first["task"], "Loss": loss_label(first["loss"])}
    if why := why_missing(cells):
        return {**row, COLUMNS["exact_match"]: why}
    for metric, label in COLUMNS.items():
        row[label] = estimate(cells, f"{metric}_", 1, interval=metric == "exact_match")
        if metric == "exact_match":
            row |= difference_to(cells, other)
    row["n"] = f"{int(first['exact_match_n']):,}"
    row["Seeds"] = str(len(cells))
    return row | beside_paper(cells, PUBLISHED)


def _caption(run: Run, data: pd.DataFrame, cells: pd.DataFrame) -> str:
    several = measured(data).groupby(["model", "task", "loss"], observed=True).size().max() > 1
    other = opponent(data)
    parts = [
        decoding(run),
        "Acc is exact match by value of the final answer; a completion without a number counts as "
        "wrong.",
        sample_note(run, cells),
    ]
    if data["strict_match_value"].notna().any():
        parts.append(
            "lm-eval strict and flexible: accuracy (%) by the two rules of lm-eval's gsm8k, which "
            "compare text (strict: after ####; flexible: the last number)."
        )
    parts.append("Brackets: 95 % intervals, percentile bootstrap over the n test examples.")
    if several:
        parts.append("±: standard deviation over training seeds.")
    parts.append(f"Δ to {loss_label(other)}: paired difference of Acc on the same examples.")
    parts.append(significance_note(other, several=several))
    if data["published_exact_match"].notna().any():
        parts.append(
            f"Paper: {reference(TABLE)}, which does not report its seeds, prompts or parser; "
            f"{TO_PAPER}: Acc minus that."
        )
        parts += _printed_twice(data)
    return " ".join(parts)


def _printed_twice(data: pd.DataFrame) -> list[str]:
    """What the paper prints elsewhere for the same cross-entropy rows."""
    notes = []
    beside = (data["loss"] == REFERENCE) & data["published_exact_match"].notna()
    shown = data.loc[beside, ["model", "task"]].drop_duplicates()
    for model, task in shown.itertuples(index=False):
        row = {"model": str(model), "task": str(task), "loss": REFERENCE}
        here, ablation, counts = (
            published(table, **row) for table in (TABLE, "ablation", "categories")
        )
        elsewhere = {}
        if ablation:
            elsewhere[reference("ablation")] = ablation["exact_match"]
        if counts:
            elsewhere[f"{reference('categories')}, which names no model"] = (
                100 * counts["exact"] / counts["n"]
            )
        other = [
            f"{value:.2f} in {where}"
            for where, value in elsewhere.items()
            if here and f"{value:.2f}" != f"{here['exact_match']:.2f}"
        ]
        if other:
            name = " ".join(model_columns(str(model), None).values())
            notes.append(f"It prints CE on {task} with {name} also as {' and '.join(other)}.")
    return notes
