"""Table 12 of the paper (MMLU), and any other suite of `smmd-bench regress`.

They show what checkpoints that were trained on a task still know of something else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.publishing.style import loss_label
from smmd_bench.publishing.tables import DASH, with_deviation, with_interval
from smmd_bench.results.verdict import main_losses

from ._cells import opponent
from ._paper import is_other_training, published
from ._text import delta, model_columns, p_text, without_dashes

MARGIN = 1.0
"""Points below cross-entropy that count as no loss of ability."""
LEAST = round(300 / MARGIN)
"""Questions below which not even equal answers to all of them would show that: rule of three."""
VERDICT, SUITE = "Not worse", "mmlu"
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
    " ±: its standard error. Δ is paired over the same questions, in points, p McNemar's exact "
    f"test, not corrected. {VERDICT}: yes if the whole interval is above −{MARGIN:g} point and n "
    f"is {LEAST} or more; unclear is no proof of a loss."
)
OF_MMLU = f"Accuracy (%) by lm-eval's task mmlu, without chat template;{DIFFERENCES}"
OF_OTHERS = f"Values as lm-eval gives them (shares of one in percent);{DIFFERENCES}"


@dataclass(frozen=True)
class MmluTable:
    """Accuracy by group of subjects, each ± lm-eval's standard error, with differences to CE."""

    name: ClassVar[str] = "mmlu_table"
    title: ClassVar[str] = "MMLU evaluation"
    paper: ClassVar[str] = "Table 12"
    order: ClassVar[int] = 120

    def skip(self, run: Run) -> str | None:
        """`smmd-bench regress` makes its rows."""
        known = (run.regression["suite"] == SUITE).any()
        return None if known else "`smmd-bench regress RUN --suite mmlu` was not run"

    def build(self, run: Run) -> Artefact:
        """One row a checkpoint; after it, where there is one, the paper's."""
        data, rows = _mmlu(main_losses(run)), []
        for _, group in data.groupby("address", sort=False):
            by = group.set_index("name").to_dict("index")
            values = _groups(by, "value", "stderr")
            rows.append(row := _row(by[SUITE], {"From": "here", **values}, opponent(data)))
            if not pd.isna(by[SUITE]["published"]):
                same = {name: row[name] for name in ("Model", "Params", "Trained on", "Loss", "n")}
                theirs = _groups(by, "published", "published_error")
                rows.append({**same, "From": "paper", **theirs, "Shots": row["Shots"]})
        unused = ["From"] if data["published"].isna().all() else []
        return _artefact(rows, data, self.title, OF_MMLU, [h for _, h in GROUPS.values()], unused)


@dataclass(frozen=True)
class RegressionTable:
    """One row a suite, metric and checkpoint, each ± standard error, with differences to CE."""

    name: ClassVar[str] = "regression_table"
    title: ClassVar[str] = "Regression checks through lm-eval"
    paper: ClassVar[str] = ""
    order: ClassVar[int] = 120

    def skip(self, run: Run) -> str | None:
        """`smmd-bench regress` makes its rows; MMLU has a table of its own."""
        known = (run.regression["suite"] != SUITE).any()
        return None if known else "`smmd-bench regress RUN --suite TASK` was not run"

    def build(self, run: Run) -> Artefact:
        """Of a group of tasks, the groups; else the tasks. A suite and metric stand together."""
        frame = run.regression[run.regression["suite"] != SUITE]
        groups = frame.loc[frame["kind"] == "group", "address"].unique()
        data = frame[(frame["kind"] == "group") | ~frame["address"].isin(groups)]
        order = data.groupby(["suite", "metric"], sort=False).ngroup()
        data = data.loc[order.sort_values(kind="stable").index]
        rows = []
        for row in data.to_dict("records"):
            names = {"Suite": row["suite"], "Task": row["name"], "Metric": row["metric"]}
            value = {"Value": with_deviation(row["value"], row["stderr"])}
            rows.append(names | _row(row, value, opponent(data)))
        unused = ["Task"] if (data["name"] == data["suite"]).all() else []
        return _artefact(rows, data, self.title, OF_OTHERS, ["Value"], unused)


def _mmlu(run: Run) -> pd.DataFrame:
    """MMLU's groups, with published and published_error where the whole setting is the paper's."""
    data = run.regression
    data = data[(data["suite"] == SUITE) & data["name"].isin(GROUPS)]
    others = {c["address"]: is_other_training(run, c) for c in run.cells.to_dict("records")}
    same = (data["task"] == PAPER_TASK) & (data["shots"] == PAPER_SHOTS) & data["limit"].isna()
    same &= (data["documents"] == WHOLE) & ~data["cell"].map(others).eq(True)
    found = []
    for row, known in zip(data.to_dict("records"), same, strict=True):
        names = {"model": str(row["model"]), "task": SUITE, "loss": str(row["loss"])}
        paper, group = published(SUITE, **names) if known else {}, GROUPS[row["name"]][0]
        found.append((paper.get(group), paper.get(f"{group}_error")))
    columns = ["published", "published_error"]
    return data.join(pd.DataFrame(found, data.index, columns, dtype="float64"))


def _groups(rows: Mapping[Any, Any], value: str, error: str) -> dict[str, str]:
    """The values of the groups of subjects by heading."""
    named = ((heading, rows[name]) for name, (_, heading) in GROUPS.items())
    return {heading: with_deviation(row[value], row[error]) for heading, row in named}


def _row(row: Mapping[Any, Any], values: Mapping[str, str], other: str) -> dict[str, str]:
    """The checkpoint of a row of `run.regression`, its values, the difference and its setting."""
    trained, difference = isinstance(row["task"], str), (DASH, DASH, DASH)
    if row["against_loss"] == other and row["n"] == row["documents"]:
        bounds, enough = (row["low"], row["high"]), row["documents"] >= LEAST
        difference = (
            with_interval(row["difference"], *bounds, 2, sign=True),
            p_text(row["p"]),
            "yes" if enough and row["low"] > -MARGIN else "unclear",
        )
    return {
        **model_columns(str(row["model"]), row["params"]),
        "Trained on": str(row["task"]) if trained else DASH,
        "Loss": loss_label(str(row["loss"])),
        "Seed": str(row["seed"]) if trained else DASH,
        **values,
        **dict(zip((delta(other), "p", VERDICT), difference, strict=True)),
        "Shots": DASH if pd.isna(row["shots"]) else str(row["shots"]),
        "Limit": DASH if pd.isna(row["limit"]) else f"first {int(row['limit'])}",
        "Engine": str(row["engine"]),
        "n": f"{int(row['n']):,}",
    }


def _artefact(
    rows: Iterable[dict[str, str]], data: pd.DataFrame, title: str, shown: str,
    values: list[str], unused: list[str],
) -> Artefact:  # fmt: skip
    """The table without these columns, and without those that hold dashes alone."""
    table = pd.DataFrame(rows).fillna(DASH).drop(columns=unused)
    table = without_dashes(table, ["Limit", "p", "Trained on", "Seed"])
    table.attrs |= {"title": title, "values": [*values, delta(opponent(data)), "p", VERDICT]}
    return Artefact(shown, table, data=data)
