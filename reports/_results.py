"""The one result frame, of which every table of results is a pivot, and the tests in it.

A result frame has one row a cell and metric: model, params, task, loss, seed, status, stage,
address, metric; value, low, high, n; against_loss, difference and difference_low, _high, _b, _c,
_p. `add_published` and `add_tests` add columns. What a cell does not have is missing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import pandas as pd

from smmd_bench.contracts import Run
from smmd_bench.results.pairing import KEY, gains, in_order, paired
from smmd_bench.scoring.gain import LEVEL

from ._cells import find_opponent

EXACT = "exact_match"
_CELL = ["model", "params", "task", "loss", "seed", "status", "stage"]
_VALUES = ["value", "low", "high", "n"]
_DIFFERENCE = {name: f"difference_{name}" for name in ("low", "high", "b", "c", "p")}
_COMPARED = ["against_loss", "difference", *_DIFFERENCE.values()]
_GAIN = {
    "difference": "gain", "low": "gain_low", "high": "gain_high", "p_holm": "gain_p",
    "smallest": "gain_smallest",
}  # fmt: skip


def join_results(run: Run, cells: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    """These metrics of these cells, metric by metric."""
    key = ["address", "metric"]
    identity = cells[[*_CELL, "address"]]
    blocks = [identity.assign(metric=metric) for metric in metrics]
    every_row = pd.concat(blocks, ignore_index=True)

    values = run.metrics[[*key, *_VALUES]].astype({"n": "Int64"})
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
    blocks: dict[str, pd.DataFrame] = {}
    for metric, rows in data.groupby("metric", sort=False):
        blocks[str(metric)] = rows.reset_index(drop=True)
    first = next(iter(blocks.values()))

    parts: list[pd.DataFrame | pd.Series[Any]] = [first[_CELL]]
    for metric, rows in blocks.items():
        parts.append(rows[_VALUES].add_prefix(f"{metric}_"))
    parts.append(first[[*_COMPARED, "other_setting"]])

    for name in ("published", "against_published"):
        for metric in data.attrs.get("published", ()):
            values = blocks[metric][name]
            parts.append(values.rename(f"{name}_{metric}"))
    parts.append(first[[*more]])

    for metric in compared:
        tests = blocks[metric][[*_GAIN.values()]]
        parts.append(tests.add_prefix(f"{metric}_"))
    parts.append(first["best"])
    return pd.concat(parts, axis="columns")


def add_tests(data: pd.DataFrame, run: Run, metrics: Collection[str]) -> pd.DataFrame:
    """A result frame with the gains of these metrics, the same in the rows of all seeds.

    gain, gain_low, gain_high, gain_p (by Holm) and gain_smallest; best: the largest gain of exact
    match of a model and task, if it is above zero and significant.
    """
    other = find_opponent(data)
    seeds = paired(run, other)

    # Holm corrects over what the table shows: a loss outside of it must not raise its p-values.
    seeds = seeds[seeds["metric"].isin(metrics)]
    seeds = seeds[seeds["address"].isin(data["address"])]
    tests = gains(seeds, other).rename(columns=_GAIN)

    # All seeds of a loss have one test.
    key = [*KEY, "metric"]
    tests = tests[[*key, *_GAIN.values()]]
    data = data.merge(tests, how="left", on=key)
    data = in_order(data, run.cells)
    return data.assign(best=_mark_best(data, other))


def _mark_best(data: pd.DataFrame, other: str) -> pd.Series[bool]:
    """Where a row has the largest gain of its model and task, and a significant one."""
    # The gain of `other` is its noise floor, and of an error the smallest would be the best.
    can_win = (data["loss"] != other) & (data["metric"] == EXACT)
    gain = data["gain"].where(can_win)
    by_pair = gain.groupby([data["model"], data["task"]], observed=True)
    is_largest = gain == by_pair.transform("max")
    return is_largest & (gain > 0) & (data["gain_p"] < LEVEL)


def count_digits(label: str) -> int:
    """The decimals of a metric's difference."""
    return 1 if "%" in label else 2
