"""Whether a loss is better than cross-entropy: the difference, its test, and what it could show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from smmd_bench.contracts import ExactMatch, Metric, ParseFailureRate, Run
from smmd_bench.publishing.tables import number
from smmd_bench.scoring.gain import holm, smallest_difference
from smmd_bench.scoring.power import FEWEST

from ._cells import KEY, in_order, is_reference, measured, metrics_of, opponent
from ._gains import first_metric, gains, paired, reference_of, seed_gains
from ._significance import LEVEL

_PARTS = ("gain", "gain_low", "gain_high", "gain_p", "gain_smallest")
_POINTS = 100
"""A rate cannot differ by more."""
NOTHING_LEARNT = "nothing learnt"
"""The verdict where neither a loss nor what it is compared with has a right answer."""
SEEDS_DIFFER = "seeds differ"
"""The verdict on cross-entropy against that of other seeds, where they can be told apart."""
_RATES = ("parse_failure_rate", "truncation_rate")


def judged_metrics(task: str) -> list[Metric]:
    """The first metric of a task, and the first error that it measures, such as MAE."""
    first = first_metric(task)
    errors = [m for m in metrics_of(task) if m.better == "lower" and m.name not in _RATES]
    return list({m.name: m for m in ([first] if first else []) + errors[:1]}.values())


def verdicts(run: Run) -> pd.DataFrame:
    """One row a model, task, loss and metric of `judged_metrics`, where there is a difference: what
    `tested` says, and verdict: better, worse, "cannot tell (below ±4.5)", or "cannot tell (more
    seeds)" where they are too few to know their spread; `NOTHING_LEARNT`; "not tested: run it
    again" of one seed whose comparison an earlier version made, without a test.

    The noise floor is no loss, so it is neither better nor worse: `SEEDS_DIFFER`.
    """
    by_task = {str(task): judged_metrics(str(task)) for task in run.cells["task"].unique()}
    other, dead = reference_of(run), learnt_nothing(run)
    data = tested(seed_gains(run, by_task.__getitem__), other)
    if len(data):
        data["verdict"] = [
            NOTHING_LEARNT
            if tuple(row[name] for name in KEY) in dead
            else _verdict(row, noise=row["loss"] == other)
            for row in data.to_dict("records")
        ]
    return data


def learnt_nothing(run: Run) -> set[tuple[Any, ...]]:
    """Model, task and loss where no seed of it, nor of what it is compared with, has an answer that
    is right, or none that can be read."""
    firsts = {task: first_metric(str(task)) for task in run.metrics["task"].unique()}
    rates = {task: m.name for task, m in firsts.items() if m is not None and m.better == "higher"}
    metric, value = run.metrics["metric"], run.metrics["value"]
    wrong = (metric == run.metrics["task"].astype("str").map(rates)) & (value == 0)
    unread = (metric == ParseFailureRate.name) & (value == _POINTS)
    cells = measured(run.cells)
    dead = cells["address"].isin(run.metrics.loc[wrong | unread, "address"])
    by_loss = dead.groupby([cells[name] for name in KEY], observed=True).all()
    others = is_reference(by_loss.index.to_frame()["loss"], reference_of(run))
    live = {key[:2] for key in by_loss.index[~by_loss & others]}
    return {key for key in by_loss.index[by_loss] if key[:2] not in live}


def tested(seeds: pd.DataFrame, other: str) -> pd.DataFrame:
    """The columns of `_gains.gains`, with p_holm (corrected over the losses of a model, task and
    metric; `other`, which they are compared with, against itself is no loss of these) and smallest
    (`smallest_difference` at the level that the first of so many losses must pass)."""
    if seeds.empty:
        return seeds
    data = gains(seeds)
    family = ["model", "task", "metric", data["loss"] == other]
    families = data.groupby(family, observed=True)
    data["p_holm"] = families["p"].transform(holm)
    sizes = families["p"].transform("count")
    data["smallest"] = [
        smallest_difference(row, LEVEL / max(1, size))
        for row, size in zip(data.to_dict("records"), sizes, strict=True)
    ]
    return data


def with_tests(data: pd.DataFrame, run: Run, metrics: Sequence[str]) -> pd.DataFrame:
    """`data` with what `tested` says of these metrics in the rows of a model, task and loss.

    METRIC_gain, _gain_low, _gain_high, _gain_p (by Holm), _gain_smallest; best: of the first
    metric the largest gain of a model and task, if it is above zero and its corrected p below
    `LEVEL`.
    """
    found = _tests(data, run, metrics)
    for metric in metrics:
        here = found.loc[found["metric"] == metric, [*KEY, *_PARTS]]
        here = here.rename(columns={name: f"{metric}_{name}" for name in _PARTS})
        data = in_order(data.merge(here, how="left", on=KEY), run.cells)
    return data.assign(best=_best(data, f"{metrics[0]}_"))


def with_tests_by_metric(data: pd.DataFrame, run: Run) -> pd.DataFrame:
    """The same of a frame with one row a cell and metric: gain, gain_low and so on; best is of
    exact match."""
    key = [*KEY, "metric"]
    found = _tests(data, run, [*data["metric"].unique()])[[*key, *_PARTS]]
    data = in_order(data.merge(found, how="left", on=key), run.cells)
    exact = data["metric"] == ExactMatch.name
    best = _best(data[exact], "")
    return data.assign(best=best.reindex(data.index, fill_value=False))


def _tests(data: pd.DataFrame, run: Run, metrics: Sequence[str]) -> pd.DataFrame:
    seeds = paired(run, other := opponent(data))
    seeds = seeds[seeds["metric"].isin(metrics)].assign(label="", better="higher")
    found = tested(seeds, other)
    named = dict(zip(("difference", "low", "high", "p_holm", "smallest"), _PARTS, strict=True))
    return found.rename(columns=named).reindex(columns=[*KEY, "metric", *_PARTS])


def _best(data: pd.DataFrame, prefix: str) -> pd.Series[bool]:
    gain = data[f"{prefix}gain"].where(data["loss"] != opponent(data))
    largest = gain.groupby([data["model"], data["task"]], observed=True).transform("max")
    return (gain == largest) & (gain > 0) & (data[f"{prefix}gain_p"] < LEVEL)


def _verdict(gain: dict[Any, Any], *, noise: bool) -> str:
    if gain["p_holm"] < LEVEL:
        if noise:
            return SEEDS_DIFFER
        return "better" if (gain["difference"] > 0) == (gain["better"] == "higher") else "worse"
    if gain["seeds"] == 1 and math.isnan(gain["p_holm"]):
        return "not tested: run it again"
    if gain["df"] < FEWEST or ("%" in gain["label"] and gain["smallest"] > _POINTS):
        return "cannot tell (more seeds)"
    if math.isnan(gain["smallest"]):
        return "cannot tell"
    return f"cannot tell (below ±{number(gain['smallest'], digits_of(gain['label']))})"


def digits_of(label: str) -> int:
    """The decimals of a metric's difference."""
    return 1 if "%" in label else 2
