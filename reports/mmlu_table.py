"""Table 12 of the paper: MMLU, 5-shot, of checkpoints that were trained on something else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.publishing.tables import DASH

from ._main_losses import main_losses
from ._paper import published, reference
from ._regression import (
    checkpoint_columns,
    difference_columns,
    difference_names,
    difference_note,
    limit_note,
    opponent_of,
    published_with_error,
    setting_columns,
    truncation_note,
    with_error,
    without_constant,
)
from ._setting import other_training

TABLE, SUITE = "mmlu", "mmlu"
GROUPS = {
    "mmlu_stem": ("stem", "STEM"),
    "mmlu_humanities": ("humanities", "Humanities"),
    "mmlu_social_sciences": ("social_sciences", "Social Sci."),
    "mmlu_other": ("other", "Other"),
    "mmlu": ("average", "Avg."),
}
HERE = "here"
PAPER_TASK, PAPER_SHOTS, WHOLE = "gsm8k", 5, 14042
"""The paper's values stand beside checkpoints trained as there on this, and all questions, only."""


@dataclass(frozen=True)
class MmluTable:
    """Accuracy by group of subjects, each ± lm-eval's standard error, with differences to CE."""

    name: ClassVar[str] = "mmlu_table"
    title: ClassVar[str] = "MMLU evaluation"
    paper: ClassVar[str] = "Table 12"

    def skip(self, run: Run) -> str | None:
        """`smmd-bench regress` makes its rows."""
        if (run.regression["suite"] == SUITE).any():
            return None
        return "`smmd-bench regress RUN --suite mmlu` was not run"

    def build(self, run: Run) -> Artefact:
        """One row a checkpoint; after it, where there is one, the paper's."""
        run, left_out = main_losses(run)
        frame = run.regression
        data = frame[(frame["suite"] == SUITE) & frame["name"].isin(GROUPS)]
        cells = run.cells.to_dict("records")
        others = {c["address"]: ", ".join(other_training(run, c)) for c in cells}
        data = _with_published(data.assign(other_training=data["cell"].map(others)))
        other = opponent_of(data)
        rows = []
        for _, group in data.groupby("address", sort=False):
            records = {row["name"]: row for row in group.to_dict("records")}
            rows += _rows({str(name): row for name, row in records.items()}, other)
        table = pd.DataFrame(rows)
        if (table["From"] == HERE).all():
            table = table.drop(columns="From")
        table, said = without_constant(table, data)
        table.attrs["title"] = self.title
        table.attrs["values"] = [*[label for _, label in GROUPS.values()], *difference_names(other)]
        return Artefact(caption=_caption(data, other) + said + left_out, table=table, data=data)


def _rows(groups: Mapping[str, Mapping[Any, Any]], other: str) -> list[dict[str, str]]:
    whole = {str(key): value for key, value in groups[SUITE].items()}
    row = {**checkpoint_columns(whole), "From": HERE}
    for name, (_, label) in GROUPS.items():
        row[label] = with_error(groups[name]["value"], groups[name]["stderr"])
    row |= {**difference_columns(whole, other), **setting_columns(whole)}
    paper = _paper(whole)
    if not paper:
        return [row]
    same = ("Model", "Params", "Trained on", "Loss", "Shots", "n")  # that is the condition
    beside = {**dict.fromkeys(row, DASH), **{name: row[name] for name in same}, "From": "paper"}
    for group, label in GROUPS.values():
        beside[label] = published_with_error(paper, group)
    return [row, beside]


def _paper(row: Mapping[str, Any]) -> Mapping[str, float]:
    """The published values, where model, training and setting are the same."""
    same = row["task"] == PAPER_TASK and row["shots"] == PAPER_SHOTS
    whole = pd.isna(row["limit"]) and row["documents"] == WHOLE
    if not (same and whole) or row["other_training"]:
        return {}
    return published(TABLE, model=str(row["model"]), task=TABLE, loss=str(row["loss"]))


def _with_published(data: pd.DataFrame) -> pd.DataFrame:
    values: list[float | None] = []
    errors: list[float | None] = []
    for row in data.to_dict("records"):
        group = GROUPS[str(row["name"])][0]
        paper = _paper({str(key): value for key, value in row.items()})
        values.append(paper.get(group))
        errors.append(paper.get(f"{group}_error"))
    columns = {"published": values, "published_error": errors}
    return data.join(pd.DataFrame(columns, index=data.index, dtype="float64"))


def _caption(data: pd.DataFrame, other: str) -> str:
    shots = " or ".join(str(int(n)) for n in sorted(data["shots"].dropna().unique()))
    parts = [
        f"Accuracy (%) by lm-eval's task mmlu, {shots}-shot, without chat template; ±: standard "
        "error as lm-eval gives it (of the n questions asked, by subject)."
    ]
    parts[0] += difference_note(data, other)
    if data["published"].notna().any():
        parts.append(
            f"Paper: {reference(TABLE)}, which does not say whether it started from a base or an "
            "instruction-tuned checkpoint, nor from how many seeds."
        )
    if others := [text for text in data["other_training"].dropna().unique() if text]:
        parts.append(f"No values of the paper beside another training: {'; '.join(others)}.")
    return " ".join(parts) + limit_note(data, "subject") + truncation_note(data)
