"""The cells of a report: which it has, why some have no result, and what they are compared with."""

from __future__ import annotations

import pandas as pd

from smmd_bench.contracts import Run
from smmd_bench.publishing.style import loss_label
from smmd_bench.results.baselines import REFERENCE, cell_key
from smmd_bench.results.pairing import is_reference, metrics_of

PAIR = ["model", "task"]
NO_RESULTS = "no cell has results"
NO_NUMBERS = "no task has numbers as answers"

Pair = tuple[str, str]
"""A model and a task."""


def select_rows(data: pd.DataFrame, **values: object) -> pd.DataFrame:
    """The rows whose columns have these values: `select_rows(cells, status="done")`."""
    for column, value in values.items():
        data = data[data[column] == value]
    return data


def select_measured(cells: pd.DataFrame) -> pd.DataFrame:
    """Those of the cells that have results."""
    return select_rows(cells, status="done")


def explain_missing(cells: pd.DataFrame) -> str:
    """Why a row has no result: `failed in train`, `skipped`, `pending`; empty where it has one."""
    # One seed with a result is a row of the table; the caption's n and seeds say that it is alone.
    if not select_measured(cells).empty:
        return ""

    reasons = []
    for status, stage in zip(cells["status"], cells["stage"], strict=True):
        reasons.append(f"failed in {stage}" if status == "failed" else str(status))

    # Most seeds fail alike, and the cell of a table is narrow.
    return " / ".join(dict.fromkeys(reasons))


def describe_unpaired(run: Run, cells: pd.DataFrame, other: str) -> str:
    """Why the cells of a loss, of one model and task, are compared with none of `other`."""
    model, task = cells[PAIR].iloc[0]
    done = select_measured(run.cells)
    references = select_pair(done[is_reference(done["loss"], other)], (str(model), str(task)))
    label = loss_label(other)
    if references.empty:
        return f"no {label} to compare with"

    described = {content["address"]: cell_key(content) for content in run.manifest["cells"]}
    of_loss = [described[address] for address in select_measured(cells)["address"]]
    of_reference = [described[address] for address in references["address"]]
    for field, meaning in (("test", "test set"), ("recipe", "recipe")):
        of_one = {getattr(key, field) for key in of_loss}
        of_other = {getattr(key, field) for key in of_reference}
        if not of_one & of_other:
            return f"{label} has another {meaning}"
    return f"{label} has other seeds"


def list_pairs(data: pd.DataFrame) -> list[Pair]:
    """The models and tasks of a frame, in the order of the run."""
    return [(str(model), str(task)) for (model, task), _ in data.groupby(PAIR, observed=True)]


def select_pair(data: pd.DataFrame, pair: Pair) -> pd.DataFrame:
    """The rows of one model and task."""
    model, task = pair
    return select_rows(data, model=model, task=task)


def label_metrics(task: str) -> dict[str, str]:
    """How a task calls its metrics, by name."""
    return {metric.name: metric.label for metric in metrics_of(task)}


def name_seeds(cells: pd.DataFrame) -> str:
    """`seed 0`, `seeds 0, 1, 2` or `seeds 0 to 9`."""
    seeds = sorted(map(int, cells["seed"].unique()))
    if len(seeds) > 5 and seeds == [*range(seeds[0], seeds[-1] + 1)]:
        return f"seeds {seeds[0]} to {seeds[-1]}"
    word = "seeds" if len(seeds) > 1 else "seed"
    return f"{word} {', '.join(map(str, seeds))}"


def select_numeric(run: Run) -> pd.DataFrame:
    """The cells of tasks whose answers are numbers; a number in a summary is none."""
    # All cells of a task have the same true answers, so that the scores of one are enough.
    one_a_task = select_measured(run.cells).drop_duplicates("task")
    scores = run.read("scores", ["answer"], one_a_task["address"])
    answers = scores.reindex(columns=["task", "answer"])

    # A task without any measured cell is not among the counts, and stays.
    counts = answers.groupby("task", observed=True)["answer"].count()
    without_numbers = counts.index[counts == 0]
    return run.cells[~run.cells["task"].isin(without_numbers)]


def list_numeric_tasks(run: Run) -> list[str]:
    """The measured tasks whose targets hold numbers; times are none, as 12:50 is close to 1:00."""
    times = select_rows(run.metrics, metric="time_gap")["task"]
    tasks = select_measured(select_numeric(run))["task"]
    return [str(task) for task in tasks[~tasks.isin(times)].unique()]


def explain_no_numbers(run: Run) -> str | None:
    """Why no answers can be compared with numbers; None: some can."""
    if select_measured(run.cells).empty:
        return NO_RESULTS
    return None if list_numeric_tasks(run) else NO_NUMBERS


def find_opponent(data: pd.DataFrame) -> str:
    """What the rows of a table are compared with: cross-entropy, or what stands in for it."""
    references = [*data["against_loss"].dropna().unique()]
    # Tuned losses are compared with tuned cross-entropy; the table is still one of differences to
    # cross-entropy. Completions made elsewhere are compared with the first file.
    if REFERENCE in references or not references:
        return REFERENCE
    return str(references[0])
