"""The cells of a report: which it has, why some have no result, and what they are compared with."""

from __future__ import annotations

import pandas as pd

from smmd_bench.contracts import Run
from smmd_bench.publishing.style import loss_label
from smmd_bench.results.opponents import REFERENCE, cell_key
from smmd_bench.results.verdict import is_reference, metrics_of

PAIR = ["model", "task"]
NO_RESULTS = "no cell has results"
NO_NUMBERS = "no task has numbers as answers"

Pair = tuple[str, str]
"""A model and a task."""


def measured(cells: pd.DataFrame) -> pd.DataFrame:
    """Those of the cells that have results."""
    return cells[cells["status"] == "done"]


def why_missing(cells: pd.DataFrame) -> str:
    """Why a row has no result: `failed in train`, `skipped`, `pending`; empty where it has one."""
    if (cells["status"] == "done").any():
        return ""
    pairs = zip(cells["status"], cells["stage"], strict=True)
    reasons = [f"failed in {stage}" if s == "failed" else str(s) for s, stage in pairs]
    return " / ".join(dict.fromkeys(reasons))


def describe_unpaired(run: Run, cells: pd.DataFrame, other: str) -> str:
    """Why the cells of a loss, of one model and task, are compared with none of `other`."""
    model, task = cells[PAIR].iloc[0]
    done = measured(run.cells)
    references = of_pair(done[is_reference(done["loss"], other)], (str(model), str(task)))
    label = loss_label(other)
    if references.empty:
        return f"no {label} to compare with"

    described = {content["address"]: cell_key(content) for content in run.manifest["cells"]}
    of_loss = [described[address] for address in measured(cells)["address"]]
    of_reference = [described[address] for address in references["address"]]
    for field, meaning in (("test", "test set"), ("recipe", "recipe")):
        here = {getattr(key, field) for key in of_loss}
        there = {getattr(key, field) for key in of_reference}
        if not here & there:
            return f"{label} has another {meaning}"
    return f"{label} has other seeds"


def pairs(data: pd.DataFrame) -> list[Pair]:
    """The models and tasks of a frame, in the order of the run."""
    return [(str(model), str(task)) for (model, task), _ in data.groupby(PAIR, observed=True)]


def of_pair(data: pd.DataFrame, pair: Pair) -> pd.DataFrame:
    """The rows of one model and task."""
    return data[(data["model"] == pair[0]) & (data["task"] == pair[1])]


def metric_labels(task: str) -> dict[str, str]:
    """How a task calls its metrics, by name."""
    return {metric.name: metric.label for metric in metrics_of(task)}


def named_seeds(cells: pd.DataFrame) -> str:
    """`seed 0`, `seeds 0, 1, 2` or `seeds 0 to 9`."""
    seeds = sorted(map(int, cells["seed"].unique()))
    if len(seeds) > 5 and seeds == [*range(seeds[0], seeds[-1] + 1)]:
        return f"seeds {seeds[0]} to {seeds[-1]}"
    return f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}"


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


def opponent(data: pd.DataFrame) -> str:
    """What the rows of a table are compared with: cross-entropy, or what stands in for it."""
    others = [*data["against_loss"].dropna().unique()]
    return REFERENCE if REFERENCE in others or not others else str(others[0])
