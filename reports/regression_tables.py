"""Table 12 of the paper (MMLU), and any other suite of `smmd-bench regress`.

They show what checkpoints that were trained on a task still know of something else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.publishing.style import loss_label
from smmd_bench.publishing.tables import DASH, with_deviation, with_interval

from ._cells import main_losses, opponent
from ._paper import is_other_training, published
from ._text import delta, model_columns, p_text

MARGIN = 1.0
"""Points below cross-entropy that count as no loss of ability."""
LEAST = round(300 / MARGIN)
"""Questions below which not even equal answers to all of them would show that: rule of three."""
VERDICT = "Not worse"
SUITE = "mmlu"
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
DIFFERENCES = (
    "Δ is paired over the same questions, in points (percentile bootstrap), p McNemar's exact "
    f"test, not corrected. {VERDICT}: yes if the whole interval is above −{MARGIN:g} point "
    f"(non-inferiority) and n is {LEAST} or more; unclear is no proof of a loss. A row with a "
    "limit is a quick look, and `truncated` in the data counts prompts that lost their first shots."
)
OF_MMLU = (
    "Accuracy (%) by lm-eval's task mmlu, without chat template; ±: its standard error. The paper "
    f"says neither which checkpoint it started from nor how many seeds it has. {DIFFERENCES}"
)
OF_OTHERS = (
    f"Values as lm-eval gives them (shares of one in percent); ±: its standard error. {DIFFERENCES}"
)


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
        data = _mmlu(main_losses(run))
        groups = data.groupby("address", sort=False)
        rows = [row for _, group in groups for row in _mmlu_rows(group, opponent(data))]
        table = pd.DataFrame(rows)
        if data["published"].isna().all():
            table = table.drop(columns="From")
        headings = [heading for _, heading in GROUPS.values()]
        return _artefact(table, data, self.title, OF_MMLU, headings)


@dataclass(frozen=True)
class RegressionTable:
    """One row a suite, metric and checkpoint, each ± standard error, with differences to CE."""

    name: ClassVar[str] = "regression_table"
    title: ClassVar[str] = "Regression checks through lm-eval"
    paper: ClassVar[str] = ""
    order: ClassVar[int] = 120

    def skip(self, run: Run) -> str | None:
        """`smmd-bench regress` makes its rows; MMLU has a table of its own."""
        if (run.regression["suite"] != SUITE).any():
            return None
        if run.regression.empty:
            return "`smmd-bench regress RUN --suite TASK` was not run"
        return "`smmd-bench regress RUN` was run with no other suite than mmlu"

    def build(self, run: Run) -> Artefact:
        """Of a group of tasks, the groups; else the tasks. A suite and metric stand together."""
        frame = run.regression[run.regression["suite"] != SUITE]
        groups = frame.loc[frame["kind"] == "group", "address"].unique()
        data = frame[(frame["kind"] == "group") | ~frame["address"].isin(groups)]
        order = data.groupby(["suite", "metric"], sort=False).ngroup()
        data = data.loc[order.sort_values(kind="stable").index]
        rows = []
        for row in data.to_dict("records"):
            names = {name.capitalize(): str(row[name]) for name in ("suite", "name", "metric")}
            value = {"Value": _with_error(row["value"], row["stderr"])}
            rows.append(names | _row(row, value, opponent(data)))
        table = pd.DataFrame(rows).rename(columns={"Name": "Task"})
        if (data["name"] == data["suite"]).all():
            table = table.drop(columns="Task")
        return _artefact(table, data, self.title, OF_OTHERS, ["Value"])


def _mmlu(run: Run) -> pd.DataFrame:
    """The rows of MMLU's groups, with other_training, published and published_error."""
    frame = run.regression
    data = frame[(frame["suite"] == SUITE) & frame["name"].isin(GROUPS)]
    others = {c["address"]: is_other_training(run, c) for c in run.cells.to_dict("records")}
    data = data.assign(other_training=data["cell"].map(others).eq(True))
    found = []
    for row in data.to_dict("records"):
        paper, (group, _) = _paper(row), GROUPS[row["name"]]
        found.append((paper.get(group), paper.get(f"{group}_error")))
    columns = ["published", "published_error"]
    return data.join(pd.DataFrame(found, data.index, columns, dtype="float64"))


def _paper(row: Mapping[Any, Any]) -> Mapping[str, float]:
    """The published values, where model, training and setting are the same."""
    same = row["task"] == PAPER_TASK and row["shots"] == PAPER_SHOTS
    whole = pd.isna(row["limit"]) and row["documents"] == WHOLE
    if not (same and whole) or row["other_training"]:
        return {}
    return published(SUITE, model=str(row["model"]), task=SUITE, loss=str(row["loss"]))


def _mmlu_rows(group: pd.DataFrame, other: str) -> list[dict[str, str]]:
    """The row of a checkpoint, and the paper's."""
    rows = group.set_index("name").to_dict("index")
    ours, papers = (
        {heading: _with_error(rows[n][value], rows[n][error]) for n, (_, heading) in GROUPS.items()}
        for value, error in (("value", "stderr"), ("published", "published_error"))
    )
    row = _row(rows[SUITE], {"From": "here", **ours}, other)
    if pd.isna(rows[SUITE]["published"]):
        return [row]
    same = {name: row[name] for name in ("Model", "Params", "Trained on", "Loss", "Shots", "n")}
    return [row, {**dict.fromkeys(row, DASH), **same, "From": "paper", **papers}]


def _with_error(value: Any, error: Any) -> str:
    """`55.47 ± 0.85`; the value alone without a standard error."""
    if pd.isna(value):
        return DASH
    return with_deviation(float(value), None if pd.isna(error) else float(error))


def _row(row: Mapping[Any, Any], values: Mapping[str, str], other: str) -> dict[str, str]:
    """The checkpoint of a row of `run.regression`, its values, the difference and its setting."""
    trained = isinstance(row["task"], str)
    return {
        **model_columns(str(row["model"]), row["params"]),
        "Trained on": str(row["task"]) if trained else DASH,
        "Loss": loss_label(str(row["loss"])),
        "Seed": str(row["seed"]) if trained else DASH,
        **values,
        **_difference(row, other),
        "Shots": DASH if pd.isna(row["shots"]) else str(row["shots"]),
        "Limit": DASH if pd.isna(row["limit"]) else f"first {int(row['limit'])}",
        "Engine": str(row["engine"]),
        "n": f"{int(row['n']):,}",
    }


def _difference(row: Mapping[Any, Any], other: str) -> dict[str, str]:
    """The paired difference over the whole suite, in points, its test, and what it says."""
    if row["against_loss"] != other or row["n"] != row["documents"]:
        return dict.fromkeys((delta(other), "p", VERDICT), DASH)
    enough = not pd.isna(row["low"]) and row["documents"] >= LEAST
    return {
        delta(other): with_interval(row["difference"], row["low"], row["high"], 2, sign=True),
        "p": p_text(row["p"]),
        VERDICT: "yes" if enough and float(row["low"]) > -MARGIN else "unclear",
    }


def _artefact(
    table: pd.DataFrame, data: pd.DataFrame, title: str, shown: str, values: list[str]
) -> Artefact:
    """The table without columns that are the same for all checkpoints; the caption has them.

    The untuned base and the paper's rows have no task and seed, so they do not count.
    """
    trained, same = data[data["cell"].notna()], []
    for column, name in (("task", "Trained on"), ("seed", "Seed"), ("engine", "Engine")):
        found = (data if name == "Engine" else trained)[column].unique()
        if len(found) <= 1:
            table = table.drop(columns=name)
            same += [f"{name}: {value}." for value in found]
    unused = [name for name in ("Limit", "p") if data[name.lower()].isna().all()]
    table = table.drop(columns=unused)
    table.attrs |= {"title": title, "values": [*values, delta(opponent(data)), "p", VERDICT]}
    return Artefact(" ".join([shown, *same]), table, data=data)
