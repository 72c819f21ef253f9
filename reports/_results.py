"""The cells of a report, and the one result frame of which every table of results is a pivot.

A result frame has one row a cell and metric: model, params, task, loss, seed, status, stage,
address, metric; value, low, high, n; against_loss, difference and difference_low, _high, _b, _c,
_p. `add_published` and `add_tests` add columns. What a cell does not have is missing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import pandas as pd

from smmd_bench.contracts import ReportSkippedError, Run
from smmd_bench.publishing.style import loss_label
from smmd_bench.results.baselines import REFERENCE, cell_key
from smmd_bench.results.pairing import (
    KEY,
    is_reference,
    order_losses,
    pair_seeds,
    sum_up_seeds,
)
from smmd_bench.scoring.gain import LEVEL

PAIR = ["model", "task"]

Pair = tuple[str, str]
"""A model and a task."""
EXACT = "exact_match"
_CELL = ["model", "params", "task", "loss", "seed", "status", "stage"]
_VALUES = ["value", "low", "high", "n"]
_DIFFERENCE = {name: f"difference_{name}" for name in ("low", "high", "b", "c", "p")}
_COMPARED = ["against_loss", "difference", *_DIFFERENCE.values()]
_GAIN = {
    "difference": "gain", "low": "gain_low", "high": "gain_high", "p_holm": "gain_p",
    "smallest": "gain_smallest",
}  # fmt: skip


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
    measured = select_measured(run.cells)
    of_reference = measured[is_reference(measured["loss"], other)]
    references = select_pair(of_reference, (str(model), str(task)))
    label = loss_label(other)
    if references.empty:
        return f"no {label} to compare with"

    addresses = select_measured(cells)["address"]
    keys = {content["address"]: cell_key(content) for content in run.manifest["cells"]}
    for field, meaning in (("test", "test set"), ("recipe", "recipe")):
        values = {address: getattr(key, field) for address, key in keys.items()}
        of_references = {*references["address"].map(values)}
        if of_references.isdisjoint(addresses.map(values)):
            return f"{label} has another {meaning}"
    return f"{label} has other seeds"


def list_pairs(data: pd.DataFrame) -> list[Pair]:
    """The models and tasks of a frame, in the order of the run."""
    return [(str(model), str(task)) for (model, task), _ in data.groupby(PAIR)]


def select_pair(data: pd.DataFrame, pair: Pair) -> pd.DataFrame:
    """The rows of one model and task."""
    model, task = pair
    return select_rows(data, model=model, task=task)


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
    counts = answers.groupby("task")["answer"].count()
    without_numbers = counts.index[counts == 0]
    return run.cells[~run.cells["task"].isin(without_numbers)]


def list_numeric_tasks(run: Run) -> list[str]:
    """The measured tasks whose targets hold numbers; times are none, as 12:50 is close to 1:00."""
    times = select_rows(run.metrics, metric="time_gap")["task"]
    tasks = select_measured(select_numeric(run))["task"]
    return [str(task) for task in tasks[~tasks.isin(times)].unique()]


def require_results(run: Run) -> None:
    """Raise ReportSkippedError where no cell has results."""
    if select_measured(run.cells).empty:
        raise ReportSkippedError("no cell has results")


def require_numbers(run: Run) -> list[str]:
    """The tasks of `list_numeric_tasks`; raises ReportSkippedError where there are none."""
    require_results(run)
    tasks = list_numeric_tasks(run)
    if not tasks:
        raise ReportSkippedError("no task has numbers as answers")
    return tasks


def find_opponent(data: pd.DataFrame) -> str:
    """What the rows of a table are compared with: cross-entropy, or what stands in for it."""
    references = [*data["against_loss"].dropna().unique()]
    # Tuned losses are compared with tuned cross-entropy; the table is still one of differences to
    # cross-entropy. Completions made elsewhere are compared with the first file.
    if REFERENCE in references or not references:
        return REFERENCE
    return str(references[0])


def join_results(run: Run, cells: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    """These metrics of these cells, metric by metric."""
    key = ["address", "metric"]
    identity = cells[[*_CELL, "address"]]
    blocks = []
    for metric in metrics:
        blocks.append(identity.assign(metric=metric))
    every_row = pd.concat(blocks, ignore_index=True)

    # A cell without a result has no n; as integers those of the others stay whole.
    values = run.metrics[[*key, *_VALUES]]
    values = values.astype({"n": "Int64"})
    comparisons = run.comparisons.rename(columns=_DIFFERENCE)
    differences = comparisons[[*key, *_COMPARED]]

    # Left joins: a cell without a result keeps its row, where the table says why.
    measurements = every_row.merge(values, how="left", on=key)
    return measurements.merge(differences, how="left", on=key)


def to_wide(data: pd.DataFrame, compared: Collection[str], *more: str) -> pd.DataFrame:
    """One row a cell: the parts of each metric as METRIC_PART, the differences of the first one.

    published_METRIC and against_published_METRIC are of `attrs["published"]`, METRIC_gain and so on
    of the metrics `compared`; `more` are columns of cells.
    """
    # `join_results` repeats its cells for each metric in one order, so that blocks stand in line.
    blocks = {}
    for metric, rows in data.groupby("metric", sort=False):
        blocks[str(metric)] = rows.reset_index(drop=True)
    first = next(iter(blocks.values()))

    parts: list[pd.DataFrame | pd.Series[Any]] = [first[_CELL]]
    for metric, rows in blocks.items():
        values = rows[_VALUES]
        parts.append(values.add_prefix(f"{metric}_"))
    parts.append(first[[*_COMPARED, "other_setting"]])

    published_metrics = data.attrs.get("published", ())
    for name in ("published", "against_published"):
        for metric in published_metrics:
            column = blocks[metric][name]
            parts.append(column.rename(f"{name}_{metric}"))
    parts.append(first[[*more]])

    gain_columns = [*_GAIN.values()]
    for metric in compared:
        tests = blocks[metric][gain_columns]
        parts.append(tests.add_prefix(f"{metric}_"))
    parts.append(first["best"])
    return pd.concat(parts, axis="columns")


def add_tests(data: pd.DataFrame, run: Run, metrics: Collection[str]) -> pd.DataFrame:
    """A result frame with the gains of these metrics, the same in the rows of all seeds.

    gain, gain_low, gain_high, gain_p (by Holm) and gain_smallest; best: the largest gain of exact
    match of a model and task, if it is above zero and significant.
    """
    other = find_opponent(data)
    seeds = pair_seeds(run, other)

    # Holm corrects over what the table shows: a loss outside of it must not raise its p-values.
    is_shown = seeds["metric"].isin(metrics)
    is_shown &= seeds["address"].isin(data["address"])
    tests = sum_up_seeds(seeds[is_shown], other)

    # All seeds of a loss have one test.
    key = [*KEY, "metric"]
    tests = tests.rename(columns=_GAIN)
    tests = tests[[*key, *_GAIN.values()]]
    data = data.merge(tests, how="left", on=key)

    # A merge may lose the categories, and with them the order of the run.
    data = order_losses(data, run.cells)
    return data.assign(best=_mark_best(data, other))


def _mark_best(data: pd.DataFrame, other: str) -> pd.Series[bool]:
    """Where a row has the largest gain of its model and task, and a significant one."""
    # The gain of `other` is its noise floor, and of an error the smallest would be the best.
    can_win = (data["loss"] != other) & (data["metric"] == EXACT)
    gain = data["gain"].where(can_win)
    by_pair = gain.groupby([data["model"], data["task"]])
    is_largest = gain == by_pair.transform("max")
    return is_largest & (gain > 0) & (data["gain_p"] < LEVEL)


def count_digits(label: str) -> int:
    """The decimals of a metric's difference."""
    return 1 if "%" in label else 2
