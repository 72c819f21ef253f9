"""Table 8 of the paper: how many examples each task had, as the run's manifest says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.plugin_system.parameters import split_spec
from smmd_bench.publishing.tables import DASH

from ._caption import split_caption, when
from ._paper import is_paper_task, reference, rows
from ._setting import SYNTHETIC, UNKNOWN, data_source, papers_task

TABLE = "dataset_sizes"
SPLITS = {"train": "Train", "validation": "Validation", "test": "Test"}
BESIDE = {"published_train": "Paper train", "published_test": "Paper test"}


@dataclass(frozen=True)
class DatasetSizes:
    """Training, validation and test examples of every task of the run."""

    name: ClassVar[str] = "dataset_sizes"
    title: ClassVar[str] = "Dataset sizes"
    paper: ClassVar[str] = "Table 8"
    order: ClassVar[int] = 200

    def skip(self, run: Run) -> str | None:
        """The manifest must say the sizes."""
        return None if _sizes(run) else "the run's manifest does not say how many examples it has"

    def build(self, run: Run) -> Artefact:
        """One row a task, as it is spelled in the run."""
        data = dataset_sizes(run)
        table = data.rename(columns={"task": "Task", "source": "Data", **SPLITS, **BESIDE})
        for column in (*SPLITS.values(), *BESIDE.values()):
            table[column] = [DASH if pd.isna(size) else f"{size:,}" for size in table[column]]
        known, synthetic = data[[*BESIDE]].notna().any(axis=None), data["source"] == SYNTHETIC
        unused = ["Data"] * bool((data["source"] == UNKNOWN).all())
        table = table.drop(columns=unused + ([] if known else [*BESIDE.values()]))
        table.attrs["title"] = self.title
        lack = "; a dash: none" * bool(data[[*SPLITS]].isna().any(axis=None))
        caption = split_caption(
            f"Examples of each split that the run used, as its manifest says{lack}.",
            f"Paper: {reference(TABLE)}, which rounds to tens, counts GSM8K's whole training set "
            "and names no validation split."
            if known
            else when(
                any(is_paper_task(split_spec(task)[0]) for task in data["task"]),
                f"{reference(TABLE)} has none of these tasks in this level or setting.",
            ),
            when(synthetic.any(), "No published values for synthetic data."),
        )
        return Artefact(table=table, data=data, **caption)


def dataset_sizes(run: Run) -> pd.DataFrame:
    """One row a task: source, train, validation, test, published_train and published_test.

    Published sizes stand beside the paper's level and data alone.
    """
    found = []
    for task, sizes in _sizes(run).items():
        source = data_source(run, task)
        name = papers_task(task, source)
        paper: dict[str, Any] = next((row for row in rows(TABLE) if row["task"] == name), {})
        line = {"task": task, "source": source, **{split: sizes.get(split) for split in SPLITS}}
        beside = {column: paper.get(column.removeprefix("published_")) for column in BESIDE}
        found.append(line | beside)
    return pd.DataFrame(found).astype(dict.fromkeys([*SPLITS, *BESIDE], "Int64"))


def _sizes(run: Run) -> dict[str, dict[str, int]]:
    data = run.manifest.get("data") or {}
    return {task: known["sizes"] for task, known in data.items() if known.get("sizes")}
