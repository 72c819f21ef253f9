"""Table 8 of the paper: how many examples each task had, as the run's manifest says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.plugin_system.parameters import split_spec
from smmd_bench.publishing.tables import DASH

from ._paper import UNKNOWN, data_source, other_data, rows

SPLITS = {"train": "Train", "validation": "Validation", "test": "Test"}
BESIDE = {"published_train": "Paper train", "published_test": "Paper test"}
CAPTION = (
    "Examples of each split that the run used, as its manifest says. The paper rounds to tens, "
    "counts GSM8K's whole training set and names no validation split."
)


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
        known = data[[*BESIDE]].notna().any(axis=None)
        unused = ["Data"] * bool((data["source"] == UNKNOWN).all())
        table = table.drop(columns=unused + ([] if known else [*BESIDE.values()]))
        table.attrs["title"] = self.title
        return Artefact(CAPTION, table, data=data)


def dataset_sizes(run: Run) -> pd.DataFrame:
    """One row a task: source, train, validation, test, published_train and published_test.

    Published sizes stand beside the paper's level and data alone.
    """
    found = []
    for task, sizes in _sizes(run).items():
        name = None if other_data(run, task) else split_spec(task)[0]
        paper: dict[str, Any] = next((r for r in rows("dataset_sizes") if r["task"] == name), {})
        line = {"task": task, "source": data_source(run, task)}
        line |= {split: sizes.get(split) for split in SPLITS}
        line |= {column: paper.get(column.removeprefix("published_")) for column in BESIDE}
        found.append(line)
    return pd.DataFrame(found).astype(dict.fromkeys([*SPLITS, *BESIDE], "Int64"))


def _sizes(run: Run) -> dict[str, dict[str, int]]:
    data = run.manifest.get("data") or {}
    return {task: known["sizes"] for task, known in data.items() if known.get("sizes")}
