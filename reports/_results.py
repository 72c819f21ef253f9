"""The one result frame, of which every table of results is a pivot, and the tests in it.

A result frame has one row a cell and metric: model, params, task, loss, seed, status, stage,
address, metric; value, low, high, n; against_loss, difference and difference_low, _high, _b, _c,
_p. `with_published` and `with_tests` add columns. What a cell does not have is missing.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any

import pandas as pd

from smmd_bench.contracts import Run
from smmd_bench.publishing.tables import number
from smmd_bench.scoring.gain import FEWEST, gain_of, holm, smallest_difference

from ._cells import (
    KEY,
    NO_RESULTS,
    REFERENCE,
    in_order,
    is_reference,
    judged_metrics,
    measured,
    metrics_of,
    opponent,
    reference_of,
)

EXACT = "exact_match"
LEVEL = 0.05
"""A p below it, corrected by Holm, counts as significant."""
NOTHING_LEARNT = "nothing learnt"
"""The verdict where neither a loss nor what it is compared with has a right answer."""
_CELL = ["model", "params", "task", "loss", "seed", "status", "stage"]
_VALUES = ["value", "low", "high", "n"]
_DIFFERENCE = ["low", "high", "b", "c", "p"]
_GAIN = {
    "difference": "gain", "low": "gain_low", "high": "gain_high", "p_holm": "gain_p",
    "smallest": "gain_smallest",
}  # fmt: skip
_PAIRED = [
    *("address", *KEY, "seed", "metric", "difference", "low", "high"),
    *("n", "p", "b", "c", "jackknife", "against"),
]


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


def paired(run: Run, other: str) -> pd.DataFrame:
    """The comparisons with a loss, one row a cell and metric that has a difference, and those of
    cross-entropy with itself."""
    noise = run.noise if other == REFERENCE else run.noise[:0]
    found = [run.comparisons[is_reference(run.comparisons["against_loss"], other)], noise]
    every = pd.concat([part for part in found if len(part)] or found[:1], ignore_index=True)
    return in_order(every.loc[every["difference"].notna(), _PAIRED], run.cells)


def gains(seeds: pd.DataFrame, other: str) -> pd.DataFrame:
    """One row a model, task, loss and metric of `paired`: what `gain_of` says of its seeds.

    p_holm is corrected over the losses of a model, task and metric (`other` against itself is none
    of these); smallest is the true difference that the test of the first of so many losses finds
    with a probability of 80 %.
    """
    groups = seeds.groupby([*KEY, "metric"], observed=True, sort=False)
    found = [{**group.iloc[0][[*KEY, "metric"]], **gain_of(group)} for _, group in groups]
    columns = [*KEY, "metric", "seeds", "difference", "low", "high", "p"]
    data = pd.DataFrame(found) if found else pd.DataFrame(columns=columns)
    data = in_order(data, seeds)
    family = ["model", "task", "metric", data["loss"] == other]
    p = data.groupby(family, observed=True)["p"]
    data["p_holm"] = p.transform(holm) if found else []
    sizes = [*p.transform("count").clip(lower=1)] if found else []
    smallest = [smallest_difference(r, LEVEL / n) for r, n in zip(found, sizes, strict=True)]
    return data.assign(smallest=smallest)


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


def verdicts(run: Run) -> pd.DataFrame:
    """`gains` by the metrics that losses are judged by, with label, `better` and verdict of each.

    The verdict is better, worse, "cannot tell (below ±4.5)", or "cannot tell (more seeds)" where
    they are too few to know their spread; `NOTHING_LEARNT`; of the noise floor "seeds differ".
    """
    other, dead = reference_of(run), learnt_nothing(run)
    seeds = paired(run, other)
    known = {(t, m.name): m for t in seeds["task"].unique() for m in judged_metrics(str(t))}
    order = {key: at for at, key in enumerate(known)}
    at = [order.get(key, -1) for key in zip(seeds["task"], seeds["metric"], strict=True)]
    seeds = seeds.assign(at=at).query("at >= 0").sort_values("at", kind="stable")
    data = gains(in_order(seeds.reset_index(drop=True), run.cells), other)
    of_row = [known[key] for key in zip(data["task"], data["metric"], strict=True)]
    data.insert(4, "label", [metric.label for metric in of_row])
    data.insert(5, "better", [metric.better for metric in of_row])
    rows = data.to_dict("records")
    said = [_verdict(row, tuple(row[n] for n in KEY) in dead, row["loss"] == other) for row in rows]
    return data.assign(verdict=said)


def learnt_nothing(run: Run) -> set[tuple[Any, ...]]:
    """Model, task and loss where no seed of it, nor of what it is compared with, has an answer that
    is right, or none that can be read."""
    metric, value = run.metrics["metric"], run.metrics["value"]
    firsts = {task: metrics_of(str(task))[:1] for task in run.metrics["task"].unique()}
    rates = {task: m[0].name for task, m in firsts.items() if m and m[0].better == "higher"}
    wrong = (metric == run.metrics["task"].astype("str").map(rates)) & (value == 0)
    unread = (metric == "parse_failure_rate") & (value == 100)
    cells = measured(run.cells)
    dead = cells["address"].isin(run.metrics.loc[wrong | unread, "address"])
    by_loss = dead.groupby([cells[name] for name in KEY], observed=True).all()
    others = is_reference(by_loss.index.to_frame()["loss"], reference_of(run))
    live = {key[:2] for key in by_loss.index[~by_loss & others]}
    return {key for key in by_loss.index[by_loss] if key[:2] not in live}


def _verdict(gain: dict[Any, Any], dead: bool, noise: bool) -> str:
    if dead:
        return NOTHING_LEARNT
    if gain["p_holm"] < LEVEL:
        if noise:
            return "seeds differ"
        return "better" if (gain["difference"] > 0) == (gain["better"] == "higher") else "worse"
    if gain["seeds"] == 1 and math.isnan(gain["p_holm"]):
        return "not tested: run it again"
    if gain["df"] < FEWEST or ("%" in gain["label"] and gain["smallest"] > 100):
        return "cannot tell (more seeds)"
    if math.isnan(gain["smallest"]):
        return "cannot tell"
    return f"cannot tell (below ±{number(gain['smallest'], digits_of(gain['label']))})"


def digits_of(label: str) -> int:
    """The decimals of a metric's difference."""
    return 1 if "%" in label else 2


def why_no_gain(run: Run) -> str | None:
    """Why no loss can be compared; None: one can."""
    if measured(run.cells).empty:
        return NO_RESULTS
    if (paired(run, reference_of(run))["loss"] == reference_of(run)).all():
        return "no loss has results beside those of cross-entropy for the same seed"
    return None
