"""Did a loss help? `read_run(path).verdict`, which the verdict and its picture show.

One row a model, task, loss and metric that losses are judged by: what `gain_of` says of the seeds
that both have; value and against_value, the mean of the metric over them, of the loss and of
`against_loss`; constant, what the best constant answer gets by it; of a share of examples gained
and lost, the examples of all seeds that the loss alone, or `against_loss` alone, has right
(McNemar's b and c); p_holm, corrected over the losses of a model, task and metric; smallest, the
true difference that the test finds 4 times in 5; and the verdict: better, worse, "cannot tell",
"cannot tell (more seeds)" where they are too few to know their spread, "nothing learnt".
Cross-entropy against itself is the noise floor: "seeds differ" or "cannot tell", and in no family.
With five losses or more, letters and against_letters are the groups of `tie_groups`; else they are
empty.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..contracts import Run
from ..scoring.gain import FEWEST, LEVEL
from .constants import constants_of
from .pairing import (
    KEY,
    VALUES,
    gains,
    in_order,
    is_reference,
    judged_metrics,
    main_losses,
    metrics_of,
    paired,
    reference_of,
)
from .tie_groups import tie_letters

if TYPE_CHECKING:
    import pandas as pd

OPEN = "cannot tell"
NOTHING_LEARNT = "nothing learnt"
"""Neither a loss nor what it is compared with has a right answer, or less error than a constant."""
_FLIPS = ["gained", "lost"]


def verdict_frame(run: Run) -> pd.DataFrame:
    """The frame; variants that have fewer seeds than their plain loss are not in it."""
    run = main_losses(run)
    other, dead = reference_of(run), learnt_nothing(run)
    seeds = paired(run, other)
    known = {(t, m.name): m for t in seeds["task"].unique() for m in judged_metrics(str(t))}
    order = {key: at for at, key in enumerate(known)}
    at = [order.get(key, -1) for key in zip(seeds["task"], seeds["metric"], strict=True)]
    seeds = seeds.assign(at=at).query("at >= 0").sort_values("at", kind="stable")
    seeds = in_order(seeds.reset_index(drop=True), run.cells)
    data = gains(seeds, other)
    of_row = [known[key] for key in zip(data["task"], data["metric"], strict=True)]
    data.insert(4, "label", [metric.label for metric in of_row])
    data.insert(5, "better", [metric.better for metric in of_row])
    groups = seeds.groupby([*KEY, "metric"], observed=True)
    beside = groups[[*VALUES]].mean().join(groups["against_loss"].first().astype("str"))
    flips = groups[["b", "c"]].sum(min_count=1).astype("Int64").set_axis(_FLIPS, axis="columns")
    data = data.merge(beside.join(flips).reset_index(), how="left", on=[*KEY, "metric"])
    data = data.merge(_constants(run), how="left", on=[*KEY, "metric"])
    lower = data["better"] == "lower"
    data.loc[lower, _FLIPS] = data.loc[lower, _FLIPS[::-1]].to_numpy()
    data = in_order(_with_letters(data, tie_letters(run, judged_metrics)), run.cells)
    rows = data.to_dict("records")
    return data.assign(verdict=[_verdict(row, tuple(row[n] for n in KEY) in dead) for row in rows])


def _constants(run: Run) -> pd.DataFrame:
    """What the best constant answer gets, by model, task, loss and metric."""
    constants = constants_of(run, run.cells).merge(run.cells[["address", *KEY]], on="address")
    return constants.drop(columns="address").drop_duplicates([*KEY, "metric"])


def _with_letters(data: pd.DataFrame, ties: pd.DataFrame) -> pd.DataFrame:
    """The rows with the letters of the loss and of what it is compared with."""
    for loss, name in (("loss", "letters"), ("against_loss", "against_letters")):
        key = ["model", "task", "metric", loss]
        known = ties.rename(columns={"loss": loss, "letters": name}).set_index(key)[name]
        data[name] = [known.get(row, "") for row in data[key].itertuples(index=False, name=None)]
    return data


def _verdict(row: dict[Any, Any], dead: bool) -> str:
    if dead:
        return NOTHING_LEARNT
    if row["p_holm"] < LEVEL:
        if row["loss"] == row["against_loss"]:
            return "seeds differ"
        return "better" if (row["difference"] > 0) == (row["better"] == "higher") else "worse"
    if row["seeds"] == 1 and math.isnan(row["p_holm"]):
        return "not tested: run it again"
    too_few = row["df"] < FEWEST or ("%" in row["label"] and row["smallest"] > 100)
    return f"{OPEN} (more seeds)" if too_few else OPEN


def learnt_nothing(run: Run) -> set[tuple[Any, ...]]:
    """Model, task and loss where no seed of it, nor of what it is compared with, has learnt."""
    cells = run.cells[run.cells["status"] == "done"]
    dead = cells["address"].isin(_without_answers(run) - _below_constant(run, cells))
    by_loss = dead.groupby([cells[name] for name in KEY], observed=True).all()

    # One live cell of the reference is enough: a loss beside it that has nothing right is worse.
    references = is_reference(by_loss.index.to_frame()["loss"], reference_of(run))
    live_pairs = {key[:2] for key in by_loss.index[~by_loss & references]}
    return {key for key in by_loss.index[by_loss] if key[:2] not in live_pairs}


def _without_answers(run: Run) -> set[str]:
    """The addresses of cells with no answer that is right, or none that can be read."""
    metric, value = run.metrics["metric"], run.metrics["value"]
    firsts = {task: metrics_of(str(task))[:1] for task in run.metrics["task"].unique()}
    rates = {task: m[0].name for task, m in firsts.items() if m and m[0].better == "higher"}
    wrong = (metric == run.metrics["task"].astype("str").map(rates)) & (value == 0)
    unread = (metric == "parse_failure_rate") & (value == 100)
    return {*run.metrics.loc[wrong | unread, "address"]}


def _below_constant(run: Run, cells: pd.DataFrame) -> set[str]:
    """The addresses of cells with less error than the best constant answer: 0 % exact and an R² of
    0.95 is a model that learnt."""
    values = run.metrics[["address", "task", "metric", "value"]]
    compared = constants_of(run, cells).merge(values, on=["address", "metric"])
    errors = {
        (str(task), metric.name)
        for task in compared["task"].unique()
        for metric in judged_metrics(str(task))
        if metric.better == "lower"
    }
    below = compared[compared["value"] < compared["constant"]]
    rows = below[["address", "task", "metric"]].itertuples(index=False, name=None)
    return {address for address, task, metric in rows if (str(task), metric) in errors}
