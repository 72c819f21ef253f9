"""Any other suite of `smmd-bench regress`: SAMSum by lm-eval, and lm-eval's own tasks by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.publishing.tables import DASH

from ._regression import (
    checkpoint_columns,
    difference_columns,
    difference_names,
    difference_note,
    limit_note,
    opponent_of,
    setting_columns,
    truncation_note,
    with_error,
    without_constant,
)

ELSEWHERE = "mmlu"


@dataclass(frozen=True)
class RegressionTable:
    """One row a suite, metric and checkpoint, each ± standard error, with differences to CE."""

    name: ClassVar[str] = "regression_table"
    title: ClassVar[str] = "Regression checks through lm-eval"
    paper: ClassVar[str] = ""

    def skip(self, run: Run) -> str | None:
        """`smmd-bench regress` makes its rows; MMLU has a table of its own."""
        if (run.regression["suite"] != ELSEWHERE).any():
            return None
        return "`smmd-bench regress RUN --suite TASK` was run with no other suite than mmlu"

    def build(self, run: Run) -> Artefact:
        """Of a group of tasks, the groups; else the tasks."""
        frame = run.regression
        data = _shown(frame[frame["suite"] != ELSEWHERE])
        other = opponent_of(data)
        rows = [_row({str(k): v for k, v in row.items()}, other) for row in data.to_dict("records")]
        table = pd.DataFrame(rows)
        if (data["name"] == data["suite"]).all():
            table = table.drop(columns="Task")
        table, said = without_constant(table, data)
        table.attrs["title"] = self.title
        table.attrs["values"] = ["Value", *difference_names(other)]
        return Artefact(caption=_caption(data, other) + said, table=table, data=data)


def _shown(frame: pd.DataFrame) -> pd.DataFrame:
    groups = frame.loc[frame["kind"] == "group", "address"].unique()
    shown = frame[(frame["kind"] == "group") | ~frame["address"].isin(groups)].copy()
    order = {pair: at for at, pair in enumerate(zip(shown["suite"], shown["metric"], strict=True))}
    first = [order[pair] for pair in zip(shown["suite"], shown["metric"], strict=True)]
    return shown.assign(_at=first).sort_values("_at", kind="stable").drop(columns="_at")


def _row(row: dict[str, Any], other: str) -> dict[str, str]:
    names = {"Suite": str(row["suite"]), "Task": str(row["name"]), "Metric": str(row["metric"])}
    difference = difference_columns(row, other)
    if row["n"] != row["documents"]:  # the difference is over the whole suite
        difference = dict.fromkeys(difference, DASH)
    value = {"Value": with_error(row["value"], row["stderr"])}
    return {**names, **checkpoint_columns(row), **value, **difference, **setting_columns(row)}


def _caption(data: pd.DataFrame, other: str) -> str:
    start = "Values as lm-eval gives them (shares of one in percent); ±: its standard error."
    return start + difference_note(data, other) + limit_note(data, "task") + truncation_note(data)
