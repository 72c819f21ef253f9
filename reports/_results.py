"""The one result frame, of which every table of results is a pivot, and the tests in it.

A result frame has one row a cell and metric: model, params, task, loss, seed, status, stage,
address, metric; value, low, high, n; against_loss, difference and difference_low, _high, _b, _c,
_p. `with_published` and `with_tests` add columns. What a cell does not have is missing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pandas as pd

from smmd_bench.contracts import Run
from smmd_bench.results.verdict import KEY, gains, in_order, paired
from smmd_bench.scoring.gain import LEVEL

from ._cells import opponent

EXACT = "exact_match"
_CELL = ["model", "params", "task", "loss", "seed", "status", "stage"]
_VALUES = ["value", "low", "high", "n"]
_DIFFERENCE = ["low", "high", "b", "c", "p"]
_GAIN = {
    "difference": "gain", "low": "gain_low", "high": "gain_high", "p_holm": "gain_p",
    "smallest": "gain_smallest",
}  # fmt: skip


def result_frame(run: Run, cells: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    """These metrics of these cells, metric by metric."""
    key = ["address", "metric"]
    values = run.metrics[[*key, *_VALUES]].astype({"n": "Int64"})
    differences = run.comparisons[[*key, "against_loss", "difference", *_DIFFERENCE]]
    differences = differences.rename(columns={name: f"difference_{name}" for name in _DIFFERENCE})
    own = cells[[*_CELL, "address"]]
    every = pd.concat([own.assign(metric=metric) for metric in metrics], ignore_index=True)
    return every.merge(values, how="left", on=key).merge(differences, how="left", on=key)


def widened(data: pd.DataFrame, compared: Collection[str], *more: str) -> pd.DataFrame:
    """One row a cell: the parts of each metric as METRIC_PART, the differences of the first one.

    published_METRIC and against_published_METRIC are of `attrs["published"]`, METRIC_gain and so on
    of the metrics `compared`; `more` are columns of cells.
    """
    groups = data.groupby("metric", sort=False)
    by = {str(metric): part.reset_index(drop=True) for metric, part in groups}
    first = next(iter(by.values()))
    found = {name: first[name] for name in _CELL}
    found |= {f"{metric}_{name}": part[name] for metric, part in by.items() for name in _VALUES}
    found |= {name: first[name] for name in ("against_loss", "difference")}
    found |= {f"difference_{name}": first[f"difference_{name}"] for name in _DIFFERENCE}
    found["other_setting"] = first.get("other_setting", pd.Series("", first.index))
    for name in ("published", "against_published"):
        found |= {f"{name}_{m}": by[m][name] for m in data.attrs.get("published", ())}
    found |= {name: first[name] for name in more}
    found |= {f"{m}_{name}": by[m][name] for m in compared for name in _GAIN.values()}
    return pd.DataFrame(found | {"best": first["best"]})


def with_tests(data: pd.DataFrame, run: Run, metrics: Collection[str]) -> pd.DataFrame:
    """A result frame with the gains of these metrics, the same in the rows of all seeds.

    gain, gain_low, gain_high, gain_p (by Holm) and gain_smallest; best: the largest gain of exact
    match of a model and task, if it is above zero and significant.
    """
    other, key = opponent(data), [*KEY, "metric"]
    seeds = paired(run, other)
    seeds = seeds[seeds["metric"].isin(metrics) & seeds["address"].isin(data["address"])]
    found = gains(seeds, other).rename(columns=_GAIN)[[*key, *_GAIN.values()]]
    data = in_order(data.merge(found, how="left", on=key), run.cells)
    gain = data["gain"].where((data["loss"] != other) & (data["metric"] == EXACT))
    largest = gain.groupby([data["model"], data["task"]], observed=True).transform("max")
    return data.assign(best=(gain == largest) & (gain > 0) & (data["gain_p"] < LEVEL))


def digits_of(label: str) -> int:
    """The decimals of a metric's difference."""
    return 1 if "%" in label else 2
