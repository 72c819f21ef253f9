"""Table 12 of the paper (MMLU), and any other suite of `smmd-bench regress`.

They show what checkpoints that were trained on a task still know of something else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from smmd_bench.contracts import Artefact, ReportSkippedError, Run
from smmd_bench.publishing.style import loss_label, task_label
from smmd_bench.publishing.tables import DASH, with_deviation, with_interval
from smmd_bench.results.pairing import drop_short_variants

from ._paper import find_published, is_other_training
from ._results import find_opponent, select_rows
from ._text import describe_model, drop_dashes, format_p, name_difference

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

    name = "mmlu_table"
    title = "MMLU evaluation"
    paper = "Table 12"
    order = 120

    def build(self, run: Run) -> Artefact:
        """One row a checkpoint; after it, where there is one, the paper's."""
        # Only MMLU has this table; all other suites share one.
        if not (run.regression["suite"] == SUITE).any():
            raise ReportSkippedError(
                "`smmd-bench regress RUN --suite mmlu` was not run"
            )
        data = _add_published(drop_short_variants(run))
        other = find_opponent(data)
        rows = []
        for _, group in data.groupby("address", sort=False):
            groups = group.set_index("name").to_dict("index")
            # Tests are over the whole suite: groups have values alone.
            average = groups[SUITE]
            values = _format_groups(groups, "value", "stderr")
            row = _make_row(average, {"From": "here", **values}, other)
            rows.append(row)
            if not pd.isna(average["published"]):
                rows.append(_make_published_row(row, groups))

        # Without a published row all rows are from here, and the column says nothing.
        unused = ["From"] if data["published"].isna().all() else []
        headings = [heading for _, heading in GROUPS.values()]
        return _make_artefact(rows, data, self.title, OF_MMLU, headings, unused)


@dataclass(frozen=True)
class RegressionTable:
    """One row a suite, metric and checkpoint, each ± standard error, with differences to CE."""

    name = "regression_table"
    title = "Regression checks through lm-eval"
    paper = ""
    order = 120

    def build(self, run: Run) -> Artefact:
        """Of a group of tasks, the groups; else the tasks. A suite and metric stand together."""
        others = run.regression[run.regression["suite"] != SUITE]
        if others.empty:
            raise ReportSkippedError(
                "`smmd-bench regress RUN --suite TASK` was not run"
            )
        data = _select_groups(others)
        other = find_opponent(data)
        rows = []
        for row in data.to_dict("records"):
            value = with_deviation(row["value"], row["stderr"])
            rows.append(
                {
                    "Suite": row["suite"],
                    "Task": row["name"],
                    "Metric": row["metric"],
                    **_make_row(row, {"Value": value}, other),
                }
            )

        # A suite of one task has its name.
        unused = ["Task"] if (data["name"] == data["suite"]).all() else []
        return _make_artefact(rows, data, self.title, OF_OTHERS, ["Value"], unused)


def _select_groups(data: pd.DataFrame) -> pd.DataFrame:
    """The rows of groups, and of tasks without one, each suite and metric together."""
    # A group is the mean of its tasks; some have more than fifty.
    is_group = data["kind"] == "group"
    addresses = data.loc[is_group, "address"].unique()
    data = data[is_group | ~data["address"].isin(addresses)]

    # A metric's first row decides its place, so that the order of the suites stays.
    order = data.groupby(["suite", "metric"], sort=False).ngroup()
    return data.loc[order.sort_values(kind="stable").index]


def _add_published(run: Run) -> pd.DataFrame:
    """MMLU's groups, with published and published_error where the whole setting is the paper's."""
    data = select_rows(run.regression, suite=SUITE)
    # Of single subjects the paper says nothing.
    data = data[data["name"].isin(GROUPS)]
    rows = data.to_dict("records")
    is_comparable = _is_papers_setting(data, run)

    printed = []
    for row, comparable in zip(rows, is_comparable, strict=True):
        paper: Mapping[str, float] = {}
        if comparable:
            paper = find_published(SUITE, row["model"], SUITE, row["loss"])
        group, _ = GROUPS[row["name"]]
        printed.append((paper.get(group), paper.get(f"{group}_error")))

    columns = ["published", "published_error"]
    published = pd.DataFrame(printed, data.index, columns, dtype="float64")
    return data.join(published)


def _is_papers_setting(data: pd.DataFrame, run: Run) -> pd.Series[bool]:
    """Whether a checkpoint was trained, and its answers were counted, as in the paper."""
    is_other = {}
    for cell in run.cells.to_dict("records"):
        is_other[cell["address"]] = is_other_training(run, cell)
    # The base is no cell: nothing says that it was trained in another way.
    is_trained_otherwise = data["cell"].map(is_other).eq(True)
    is_of_task = data["task"] == PAPER_TASK
    is_trained_so = is_of_task & ~is_trained_otherwise

    is_asked_so = data["shots"] == PAPER_SHOTS
    is_whole = data["documents"] == WHOLE
    is_counted_so = is_asked_so & is_whole & data["limit"].isna()
    return is_trained_so & is_counted_so


def _make_published_row(
    row: Mapping[str, str], groups: Mapping[Any, Any]
) -> dict[str, str]:
    """The paper's row of the checkpoint of a row; it has no differences."""
    kept = ("Model", "Params", "Trained on", "Loss", "n", "Shots")
    return {
        **{heading: row[heading] for heading in kept},
        "From": "paper",
        **_format_groups(groups, "published", "published_error"),
    }


def _format_groups(rows: Mapping[Any, Any], value: str, error: str) -> dict[str, str]:
    """The values of the groups of subjects by heading."""
    texts = {}
    for name, (_, heading) in GROUPS.items():
        row = rows[name]
        texts[heading] = with_deviation(row[value], row[error])
    return texts


def _make_row(
    row: Mapping[Any, Any], values: Mapping[str, str], other: str
) -> dict[str, str]:
    """The checkpoint of a row of `run.regression`, its values, the difference and its setting."""
    # The base was trained on nothing, with no seed.
    is_trained = isinstance(row["task"], str)
    return {
        **describe_model(str(row["model"]), row["params"]),
        "Trained on": task_label(row["task"]) if is_trained else DASH,
        "Loss": loss_label(str(row["loss"])),
        "Seed": str(row["seed"]) if is_trained else DASH,
        **values,
        **_format_difference(row, other),
        "Shots": DASH if pd.isna(row["shots"]) else str(row["shots"]),
        "Limit": DASH if pd.isna(row["limit"]) else f"first {int(row['limit'])}",
        "Engine": str(row["engine"]),
        "n": f"{int(row['n']):,}",
    }


def _format_difference(row: Mapping[Any, Any], other: str) -> dict[str, str]:
    """The difference to `other` and the verdict, or dashes."""
    heading = name_difference(other)

    # A comparison is over all documents of a suite; a row over some of them has none of its own.
    if row["against_loss"] != other or row["n"] != row["documents"]:
        return {heading: DASH, "p": DASH, VERDICT: DASH}

    # "unclear" is no proof of a loss: it is all that so few questions allow.
    is_enough = row["documents"] >= LEAST
    is_not_worse = is_enough and row["low"] > -MARGIN
    bounds = (row["difference"], row["low"], row["high"])
    return {
        heading: with_interval(*bounds, sign=True),
        "p": format_p(row["p"]),
        VERDICT: "yes" if is_not_worse else "unclear",
    }


def _make_artefact(
    rows: Iterable[dict[str, str]],
    data: pd.DataFrame,
    title: str,
    caption: str,
    values: list[str],
    unused: list[str],
) -> Artefact:
    """The table without the columns `unused`, and without some that hold dashes alone.

    values: the headings of the measured values, which stay in a terminal also where all are equal.
    Where it is narrow all but the last one go before the difference and the verdict.
    """
    table = pd.DataFrame(rows).fillna(DASH).drop(columns=unused)
    # Most runs have no limit, and some no comparison.
    table = drop_dashes(table, ["Limit", "p", "Trained on", "Seed"])
    setting = ["Limit", "Engine", "Shots", "n", "Params"]
    # All but the untuned model are trained on it.
    only_task = ["Trained on"] if data["task"].nunique() == 1 else []
    table.attrs |= {
        "title": title,
        "optional": [*setting, *reversed(values[:-1]), *only_task],
        "values": [*values, name_difference(find_opponent(data)), "p", VERDICT],
    }
    return Artefact(caption, table, data=data)
