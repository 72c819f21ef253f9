"""The cells of a report: which it has, why some have no result, and what they are compared with."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from smmd_bench.contracts import Metric, Run, UserError
from smmd_bench.plugin_system.parameters import is_tuned, tuned_label
from smmd_bench.plugin_system.registry import load_task

KEY = ["model", "task", "loss"]
"""The columns that tell what was trained on what, and how."""
PAIR = ["model", "task"]
REFERENCE = "ce"
"""The loss that the others are compared with."""
NO_RESULTS = "no cell has results"
NO_NUMBERS = "no task has numbers as answers"
_RATES = ("parse_failure_rate", "truncation_rate")

Pair = tuple[str, str]
"""A model and a task."""


def measured(cells: pd.DataFrame) -> pd.DataFrame:
    """Those of the cells that have results."""
    return cells[cells["status"] == "done"]


def main_losses(run: Run) -> Run:
    """The run without variants that have fewer seeds than their plain loss; tuned losses stay."""
    cells = run.cells
    seeds = cells.groupby(KEY, observed=True)["seed"].nunique().to_dict()
    kept = [
        is_tuned(loss)
        or seeds[model, task, loss] >= seeds.get((model, task, loss.partition("[")[0]), 0)
        for model, task, loss in cells[KEY].itertuples(index=False)
    ]
    return run if all(kept) else run.only(cells[kept])


def why_missing(cells: pd.DataFrame) -> str:
    """Why a row has no result: `failed in train`, `skipped`, `pending`; empty where it has one."""
    if (cells["status"] == "done").any():
        return ""
    pairs = zip(cells["status"], cells["stage"], strict=True)
    reasons = [f"failed in {stage}" if s == "failed" else str(s) for s, stage in pairs]
    return " / ".join(dict.fromkeys(reasons))


def in_order(data: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
    """The frame with model, task and loss as categoricals in the order of the run."""
    for column in KEY:
        data[column] = pd.Categorical(data[column], categories=cells[column].cat.categories)
    return data


def pairs(data: pd.DataFrame) -> list[Pair]:
    """The models and tasks of a frame, in the order of the run."""
    return [(str(model), str(task)) for (model, task), _ in data.groupby(PAIR, observed=True)]


def of_pair(data: pd.DataFrame, pair: Pair) -> pd.DataFrame:
    """The rows of one model and task."""
    return data[(data["model"] == pair[0]) & (data["task"] == pair[1])]


def metric_labels(task: str) -> dict[str, str]:
    """How a task calls its metrics, by name."""
    return {metric.name: metric.label for metric in metrics_of(task)}


def metrics_of(task: str) -> Sequence[Metric]:
    """The metrics of a task, the one that selects first; none where its plugin is not here."""
    try:
        return load_task(task).metrics()
    except UserError:
        return ()


def judged_metrics(task: str) -> list[Metric]:
    """The first metric of a task, and the first error that it measures, such as MAE."""
    every = metrics_of(task)
    errors = [m for m in every if m.better == "lower" and m.name not in _RATES]
    return [*every[:1], *(metric for metric in errors[:1] if metric not in every[:1])]


def with_numbers(run: Run) -> pd.DataFrame:
    """The cells of tasks whose answers are numbers; a number in a summary is none."""
    first = measured(run.cells).drop_duplicates("task")
    answers = run.read("scores", ["answer"], first["address"]).reindex(columns=["task", "answer"])
    known = answers.groupby("task", observed=True)["answer"].count()
    return run.cells[~run.cells["task"].isin(known.index[known == 0])]


def numeric_tasks(run: Run) -> list[str]:
    """The measured tasks whose targets hold numbers; times are none, as 12:50 is close to 1:00."""
    times = run.metrics.loc[run.metrics["metric"] == "time_gap", "task"]
    tasks = measured(with_numbers(run))["task"]
    return [str(task) for task in tasks[~tasks.isin(times)].unique()]


def why_no_numbers(run: Run) -> str | None:
    """Why no answers can be compared with numbers; None: some can."""
    if measured(run.cells).empty:
        return NO_RESULTS
    return None if numeric_tasks(run) else NO_NUMBERS


def reference_of(run: Run) -> str:
    """What the losses are compared with: cross-entropy; the first of completions made elsewhere."""
    others = run.comparisons["against_loss"]
    return str(others.iloc[0]) if "predictions" in run.manifest and len(others) else REFERENCE


def is_reference(against: pd.Series[str], other: str) -> pd.Series[bool]:
    """Where a loss is compared with `other`: a tuned loss with that tuned, too."""
    return against.isin([other, tuned_label(other)])


def opponent(data: pd.DataFrame) -> str:
    """What the rows of a table are compared with: cross-entropy, or what stands in for it."""
    others = [*data["against_loss"].dropna().unique()]
    return REFERENCE if REFERENCE in others or not others else str(others[0])
