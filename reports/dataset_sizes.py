"""Table 8 of the paper: how many examples each task had, as the run's manifest says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from smmd_bench.contracts import Artefact
from smmd_bench.publishing.tables import DASH

from ._paper import reference, rows
from ._setting import SYNTHETIC, UNKNOWN, data_source, papers_task

if TYPE_CHECKING:
    from smmd_bench.contracts import Run

TABLE = "dataset_sizes"
SPLITS = {"train": "Train", "validation": "Validation", "test": "Test"}
BESIDE = {"train": "Paper train", "test": "Paper test"}


@dataclass(frozen=True)
class DatasetSizes:
    """Training, validation and test examples of every task of the run."""

    name: ClassVar[str] = "dataset_sizes"
    title: ClassVar[str] = "Dataset sizes"
    paper: ClassVar[str] = "Table 8"

    def skip(self, run: Run) -> str | None:
        """The manifest must say the sizes."""
        return None if _sizes(run) else "the run's manifest does not say how many examples it has"

    def build(self, run: Run) -> Artefact:
        """One row a task, as it is spelled in the run."""
        data = dataset_sizes(run)
        table = pd.DataFrame([_row(line) for line in data.to_dict("records")])
        if (data["source"] == UNKNOWN).all():
            table = table.drop(columns="Data")
        known = data[[f"published_{split}" for split in BESIDE]].notna().any(axis=None)
        if not known:
            table = table.drop(columns=list(BESIDE.values()))
        table.attrs["title"] = self.title
        return Artefact(caption=_caption(data, known=bool(known)), table=table, data=data)


def dataset_sizes(run: Run) -> pd.DataFrame:
    """One row a task: source, train, validation, test, published_train and published_test."""
    found = []
    for task, sizes in _sizes(run).items():
        source = data_source(run, task)
        paper = _published(papers_task(task, source))
        line = {"task": task, "source": source, **{split: sizes.get(split) for split in SPLITS}}
        found.append({**line, **{f"published_{split}": paper.get(split) for split in BESIDE}})
    data = pd.DataFrame(found)
    numbers = [*SPLITS, *(f"published_{split}" for split in BESIDE)]
    return data.astype(dict.fromkeys(numbers, "Int64"))


def _sizes(run: Run) -> dict[str, dict[str, int]]:
    data = run.manifest.get("data") or {}
    return {task: known["sizes"] for task, known in data.items() if known.get("sizes")}


def _published(task: str | None) -> dict[str, Any]:
    """The paper's sizes; none for another level or setting of a task, or for synthetic data."""
    return next((row for row in rows(TABLE) if row["task"] == task), {})


def _row(line: dict[Any, Any]) -> dict[str, str]:
    def text(value: Any) -> str:
        return DASH if pd.isna(value) else f"{int(value):,}"

    return {
        "Task": str(line["task"]),
        "Data": str(line["source"]),
        **{label: text(line[split]) for split, label in SPLITS.items()},
        **{label: text(line[f"published_{split}"]) for split, label in BESIDE.items()},
    }


def _caption(data: pd.DataFrame, *, known: bool) -> str:
    parts = [
        "Examples of each split that the run used, as its manifest says"
        + ("; a dash: none" if data[[*SPLITS]].isna().any(axis=None) else "")
        + ".",
        f"Paper: {reference(TABLE)}, which rounds to tens, counts GSM8K's whole training set and "
        "names no validation split."
        if known
        else f"{reference(TABLE)} has none of these tasks in this level or setting.",
    ]
    if (data["source"] == SYNTHETIC).any():
        parts.append("Synthetic data is not set beside the paper's.")
    return " ".join(parts)
