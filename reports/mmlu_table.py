"""Table 12 of the paper: MMLU, 5-shot, of checkpoints that were trained on something else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.publishing.tables import DASH

from ._caption import when
from ._cells import main_losses, opponent
from ._paper import published, reference
from ._regression import checks_artefact, row_of, with_error
from ._setting import other_training

TABLE, SUITE = "mmlu", "mmlu"
GROUPS = {
    "mmlu_stem": ("stem", "STEM"),
    "mmlu_humanities": ("humanities", "Humanities"),
    "mmlu_social_sciences": ("social_sciences", "Social Sci."),
    "mmlu_other": ("other", "Other"),
    "mmlu": ("average", "Avg."),
}
"""The key in `paper.yaml` and the heading of each group of subjects."""
PAPER_TASK, PAPER_SHOTS, WHOLE = "gsm8k", 5, 14042
"""The paper's values stand beside checkpoints trained as there on this, and all questions, only."""


@dataclass(frozen=True)
class MmluTable:
    """Accuracy by group of subjects, each ± lm-eval's standard error, with differences to CE."""

    name: ClassVar[str] = "mmlu_table"
    title: ClassVar[str] = "MMLU evaluation"
    paper: ClassVar[str] = "Table 12"
    order: ClassVar[int] = 120

    def skip(self, run: Run) -> str | None:
        """`smmd-bench regress` makes its rows."""
        if (run.regression["suite"] == SUITE).any():
            return None
        return "`smmd-bench regress RUN --suite mmlu` was not run"

    def build(self, run: Run) -> Artefact:
        """One row a checkpoint; after it, where there is one, the paper's."""
        run, left = main_losses(run)
        data = _scores(run)
        other, beside = opponent(data), data["published"].notna().any()
        groups = data.groupby("address", sort=False)
        table = pd.DataFrame([row for _, group in groups for row in _rows(group, other)])
        table = table if beside else table.drop(columns="From")
        table.attrs["title"] = self.title
        shots = " or ".join(str(int(n)) for n in sorted(data["shots"].dropna().unique()))
        others = "; ".join(filter(None, data["other_training"].dropna().unique()))
        headings = [heading for _, heading in GROUPS.values()]
        return checks_artefact(
            table,
            data,
            other,
            headings,
            f"Accuracy (%) by lm-eval's task mmlu, {shots}-shot, without chat template; ±: its "
            "standard error (of the n questions asked, by subject).",
            when(
                beside,
                f"Paper: {reference(TABLE)}, which does not say whether it started from a base or "
                "an instruction-tuned checkpoint, nor from how many seeds.",
            ),
            when(others, f"No published values for another training: {others}."),
            left,
            part="subject",
        )


def _scores(run: Run) -> pd.DataFrame:
    """The rows of MMLU's groups, with other_training (what of it is not as in the paper),
    published and published_error."""
    frame, cells = run.regression, run.cells.to_dict("records")
    data = frame[(frame["suite"] == SUITE) & frame["name"].isin(GROUPS)]
    others = {cell["address"]: ", ".join(other_training(run, cell)) for cell in cells}
    data = data.assign(other_training=data["cell"].map(others))
    papers = [(_paper(row), GROUPS[row["name"]][0]) for row in data.to_dict("records")]
    found = [(paper.get(group), paper.get(f"{group}_error")) for paper, group in papers]
    columns = ["published", "published_error"]
    return data.join(pd.DataFrame(found, data.index, columns, dtype="float64"))


def _paper(row: Mapping[Any, Any]) -> Mapping[str, float]:
    """The published values, where model, training and setting are the same."""
    same = row["task"] == PAPER_TASK and row["shots"] == PAPER_SHOTS
    whole = pd.isna(row["limit"]) and row["documents"] == WHOLE
    if not (same and whole) or row["other_training"]:
        return {}
    return published(TABLE, model=str(row["model"]), task=TABLE, loss=str(row["loss"]))


def _rows(group: pd.DataFrame, other: str) -> list[dict[str, str]]:
    """The row of a checkpoint, and the paper's."""
    rows = group.set_index("name").to_dict("index")
    ours, papers = (
        {heading: with_error(rows[n][value], rows[n][error]) for n, (_, heading) in GROUPS.items()}
        for value, error in (("value", "stderr"), ("published", "published_error"))
    )
    row = row_of(rows[SUITE], {"From": "here", **ours}, other)
    if pd.isna(rows[SUITE]["published"]):
        return [row]
    same = {name: row[name] for name in ("Model", "Params", "Trained on", "Loss", "Shots", "n")}
    return [row, {**dict.fromkeys(row, DASH), **same, "From": "paper", **papers}]
