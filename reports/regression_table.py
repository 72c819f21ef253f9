"""Any other suite of `smmd-bench regress`: SAMSum by lm-eval, and lm-eval's own tasks by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd

from smmd_bench.contracts import Artefact, Run

from ._cells import opponent
from ._regression import checks_artefact, row_of, with_error

ELSEWHERE = "mmlu"


@dataclass(frozen=True)
class RegressionTable:
    """One row a suite, metric and checkpoint, each ± standard error, with differences to CE."""

    name: ClassVar[str] = "regression_table"
    title: ClassVar[str] = "Regression checks through lm-eval"
    paper: ClassVar[str] = ""
    order: ClassVar[int] = 120

    def skip(self, run: Run) -> str | None:
        """`smmd-bench regress` makes its rows; MMLU has a table of its own."""
        if (run.regression["suite"] != ELSEWHERE).any():
            return None
        if run.regression.empty:
            return "`smmd-bench regress RUN --suite TASK` was not run"
        return "`smmd-bench regress RUN` was run with no other suite than mmlu"

    def build(self, run: Run) -> Artefact:
        """Of a group of tasks, the groups; else the tasks."""
        frame = run.regression
        data = _shown(frame[frame["suite"] != ELSEWHERE])
        other = opponent(data)
        table = pd.DataFrame([_row(row, other) for row in data.to_dict("records")])
        if (data["name"] == data["suite"]).all():
            table = table.drop(columns="Task")
        table.attrs["title"] = self.title
        said = "Values as lm-eval gives them (shares of one in percent); ±: its standard error."
        return checks_artefact(table, data, other, ["Value"], said, part="task")


def _shown(frame: pd.DataFrame) -> pd.DataFrame:
    """The groups, or tasks without one; all rows of a suite and metric stand together."""
    groups = frame.loc[frame["kind"] == "group", "address"].unique()
    shown = frame[(frame["kind"] == "group") | ~frame["address"].isin(groups)]
    order = shown.groupby(["suite", "metric"], sort=False).ngroup()
    return shown.loc[order.sort_values(kind="stable").index]


def _row(row: dict[Any, Any], other: str) -> dict[str, str]:
    names = {"Suite": str(row["suite"]), "Task": str(row["name"]), "Metric": str(row["metric"])}
    return names | row_of(row, {"Value": with_error(row["value"], row["stderr"])}, other)
