"""What the tables of the vision tasks share: the data's source, rows over seeds, their captions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from smmd_bench.contracts import Artefact
from smmd_bench.parameters import split_spec
from smmd_bench.publishing.style import loss_label
from smmd_bench.publishing.tables import DASH, number
from smmd_bench.results.files import read_json

from ._cells import (
    decoding,
    difference_to,
    estimate,
    measured,
    metrics_beside_published,
    missing_note,
    model_columns,
    opponent,
    why_no_row,
)
from ._paper import paper_model, published, reference
from ._significance import BOLD, bold_better

if TYPE_CHECKING:
    from smmd_bench.results.run import RunFrames

SYNTHETIC, UNKNOWN = "synthetic", DASH
PICTURES = ("clock_time", "chartqa")
"""Tasks of the paper whose data may be synthetic here."""


@dataclass(frozen=True)
class VisionTable:
    """What differs between the tables: task, table of `paper.yaml`, metrics and their columns.

    `columns` and `beside` give the heading of a metric, of ours and as published; `intervals` are
    the metrics shown with theirs.
    """

    task: str
    table: str
    columns: Mapping[str, str]
    intervals: Sequence[str]
    beside: Mapping[str, str]

    def cells(self, run: RunFrames) -> pd.DataFrame:
        """The cells of the task, whatever their parameters and status."""
        return run.cells[run.cells["task_name"] == self.task]

    def skip(self, run: RunFrames) -> str | None:
        """Why there is no row; None: there is one."""
        return why_no_row(self.cells(run), f"{self.task} cell")

    def artefact(
        self, run: RunFrames, title: str, *, what: str, meaning: str, papers_data: str
    ) -> Artefact:
        """The table, its data, and a caption with `meaning`; `what` the pictures show."""
        data, cells = self.data(run), self.cells(run)
        table = self.frame(data)
        table.attrs["title"] = title_with_source(title, data, what)
        table.attrs["bold"] = bold_better(data, self.columns["exact_match"])
        notes = [decoding(run), meaning, *self.notes(data, papers_data)]
        caption = " ".join(notes) + outside_note(run, cells) + missing_note(cells)
        return Artefact(caption=caption, table=table, data=data)

    def data(self, run: RunFrames) -> pd.DataFrame:
        """One row a cell, with the source of its data; published values only beside real data."""
        data = metrics_beside_published(
            run, measured(self.cells(run)), tuple(self.columns), self.table, ()
        )
        data["data"] = [data_source(run, str(task)) for task in data["task"]]
        rows = [self._published(row) for row in data.to_dict("records")]
        for metric in self.beside:
            values = [row.get(metric) for row in rows]
            data[f"published_{metric}"] = pd.Series(values, index=data.index, dtype="float64")
        return data

    def frame(self, data: pd.DataFrame) -> pd.DataFrame:
        """One row a model, task and loss; over several seeds mean ± standard deviation."""
        groups = data.groupby(["model", "task", "loss"], observed=True)
        other = opponent(data)
        table = pd.DataFrame([self._row(group, other) for _, group in groups])
        unused = [
            *(["Task"] if data["task"].nunique() == 1 else []),
            *(["Data"] if (data["data"] == UNKNOWN).all() else []),
            *(n for m, n in self.beside.items() if data[f"published_{m}"].isna().all()),
        ]
        return table.drop(columns=unused)

    def _row(self, cells: pd.DataFrame, other: str) -> dict[str, str]:
        first = cells.iloc[0]
        return {
            **model_columns(first["model"], first["params"]),
            "Task": str(first["task"]),
            "Data": str(first["data"]),
            "Loss": loss_label(first["loss"]),
            **{
                name: estimate(cells, f"{metric}_", 1, interval=metric in self.intervals)
                for metric, name in self.columns.items()
            },
            **difference_to(cells, other),
            "n": f"{int(first['exact_match_n']):,}",
            "Seeds": str(len(cells)),
            **{name: number(first[f"published_{m}"]) for m, name in self.beside.items()},
        }

    def _published(self, row: Mapping[Any, Any]) -> Mapping[str, float]:
        task = papers_task(str(row["task"]), str(row["data"]))
        if task is None:
            return {}
        return published(self.table, model=str(row["model"]), task=task, loss=str(row["loss"]))

    def notes(self, data: pd.DataFrame, papers_data: str) -> list[str]:
        """Sentences on intervals, tests and the published values, or why none is shown.

        `papers_data` names the data that the paper used.
        """
        several = data.groupby(["model", "task", "loss"], observed=True).size().max() > 1
        where = reference(self.table)
        notes = ["Brackets: 95 % intervals, percentile bootstrap over the n test examples."]
        if several:
            notes.append("±: standard deviation over training seeds.")
        notes.append(
            f"Δ to {loss_label(opponent(data))}: paired difference of Acc on the same examples; "
            "p: McNemar's exact test"
            + (", one for each seed" if several else "")
            + ", not corrected."
        )
        notes.append(BOLD)
        if data[[f"published_{metric}" for metric in self.beside]].notna().any(axis=None):
            notes.append(f"Paper: {where}; its seeds are not reported.")
        if (data["data"] == SYNTHETIC).any():
            notes.append(f"{where} is of {papers_data}: nothing is compared with synthetic data.")
        if (data["data"] == UNKNOWN).any():
            notes.append(
                "The run does not say where its test data is from: nothing of the paper is set "
                "beside it."
            )
        models = dict.fromkeys(str(model) for model in data["model"])
        if others := [model for model in models if paper_model(model) is None]:
            notes.append(f"{where} does not have {', '.join(others)}.")
        return notes


def data_source(run: RunFrames, task: str) -> str:
    """Where a task's test data is from, as the manifest says; a dash where it does not."""
    data = (run.manifest.get("data") or {}).get(task) or {}
    source = ((data.get("identity") or {}).get("test") or {}).get("source")
    return str(source) if source else UNKNOWN


def papers_task(task: str, source: str) -> str | None:
    """A task as the paper's tables name it; None: it is one of pictures, and not the paper's.

    `source` is what `data_source` says. A spec that only names its source is the paper's task.
    """
    name, parameters = split_spec(task)
    if name not in PICTURES:
        return task
    if source in (SYNTHETIC, UNKNOWN):
        return None
    return name if set(parameters) <= {"source"} else task


def title_with_source(title: str, data: pd.DataFrame, what: str) -> str:
    """The title of a table, which names synthetic data: `..., synthetic clocks`."""
    synthetic = data["data"] == SYNTHETIC
    if not synthetic.any():
        return title
    return f"{title}, {'' if synthetic.all() else 'in part '}{SYNTHETIC} {what}"


def outside_note(run: RunFrames, cells: pd.DataFrame) -> str:
    """A sentence on digits that only cross-entropy sees; empty where there are none.

    At N = 1000 "05" is one token and no canonical integer, and so outside V_num.
    """
    shares: dict[str, float] = {}
    for address, model in zip(cells["address"], cells["model"], strict=True):
        receipt = read_json(run.path / "cells" / str(address) / "train.json") or {}
        targets = receipt.get("numeric_targets") or {}
        if targets.get("outside"):
            shares[str(model)] = 100 * targets["outside"] / targets["digit_tokens"]
    if not shares:
        return ""
    found = ", ".join(f"{share:.1f} % with {model}" for model, share in shares.items())
    return f" Digit tokens of the training targets outside V_num: {found}."
