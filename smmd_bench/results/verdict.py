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
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from ..contracts import Metric, Run
from ..scoring.gain import FEWEST, LEVEL
from .constants import constants_of
from .pairing import (
    KEY,
    VALUES,
    drop_short_variants,
    find_metrics,
    find_reference,
    is_reference,
    judged_metrics,
    order_losses,
    pair_seeds,
    sum_up_seeds,
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
    run = drop_short_variants(run)
    reference = find_reference(run)
    seeds = pair_seeds(run, reference)
    judged = _judged_by_task(seeds)
    seeds = _select_judged(seeds, judged, run)
    data = sum_up_seeds(seeds, reference)

    # Label and direction stand behind the metric that they are of.
    keys = zip(data["task"], data["metric"], strict=True)
    metrics = [judged[key] for key in keys]
    data.insert(4, "label", [metric.label for metric in metrics])
    data.insert(5, "better", [metric.better for metric in metrics])

    data = data.merge(_mean_values(seeds), how="left", on=[*KEY, "metric"])
    data = data.merge(_constants(run), how="left", on=[*KEY, "metric"])
    # An error that is smaller is gained.
    is_error = data["better"] == "lower"
    swapped = data.loc[is_error, _FLIPS[::-1]]
    data.loc[is_error, _FLIPS] = swapped.to_numpy()

    data = _add_letters(data, tie_letters(run, judged_metrics))
    data = order_losses(data, run.cells)

    dead = find_dead_losses(run)
    verdicts = []
    for row in data.to_dict("records"):
        key = (row["model"], row["task"], row["loss"])
        verdicts.append(_choose_verdict(row, key in dead))
    return data.assign(verdict=verdicts)


def _judged_by_task(seeds: pd.DataFrame) -> dict[tuple[Any, str], Metric]:
    """The metrics that the losses of each task are judged by, in the order of the tasks."""
    judged = {}
    for task in seeds["task"].unique():
        for metric in judged_metrics(str(task)):
            judged[task, metric.name] = metric
    return judged


def _select_judged(
    seeds: pd.DataFrame, judged: Collection[tuple[Any, str]], run: Run
) -> pd.DataFrame:
    """The rows of metrics that losses are judged by, in their order."""
    import pandas as pd

    # An inner join keeps the order of its left side.
    order = pd.DataFrame([*judged], columns=["task", "metric"])
    return order_losses(order.merge(seeds), run.cells)


def _mean_values(seeds: pd.DataFrame) -> pd.DataFrame:
    """The means of both values over the seeds, what is compared with, and all flips."""
    groups = seeds.groupby([*KEY, "metric"])
    means = groups[[*VALUES]].mean()
    against = groups["against_loss"].first().astype("str")
    # A metric that is no share of the examples has no flips, which is not 0.
    flips = groups[["b", "c"]].sum(min_count=1).astype("Int64")
    flips = flips.set_axis(_FLIPS, axis="columns")
    return means.join(against).join(flips).reset_index()


def _constants(run: Run) -> pd.DataFrame:
    """What the best constant answer gets, by model, task, loss and metric."""
    cells = run.cells[["address", *KEY]]
    constants = constants_of(run, run.cells).merge(cells, on="address")
    # The seeds of a loss have one test, and so one constant.
    return constants.drop(columns="address").drop_duplicates([*KEY, "metric"])


def _add_letters(data: pd.DataFrame, ties: pd.DataFrame) -> pd.DataFrame:
    """Add the letters of the loss and of what it is compared with."""
    for loss, name in (("loss", "letters"), ("against_loss", "against_letters")):
        key = ["model", "task", "metric", loss]
        letters = ties.rename(columns={"loss": loss}).set_index(key)["letters"]
        rows = data[key].itertuples(index=False, name=None)
        data[name] = [letters.get(row, "") for row in rows]
    return data


def _choose_verdict(row: dict[Any, Any], is_dead: bool) -> str:
    if is_dead:
        return NOTHING_LEARNT
    if row["p_holm"] < LEVEL:
        # Two seeds of cross-entropy: neither is better by what it was trained with.
        if row["loss"] == row["against_loss"]:
            return "seeds differ"
        is_gain = (row["difference"] > 0) == (row["better"] == "higher")
        return "better" if is_gain else "worse"
    if row["seeds"] == 1 and math.isnan(row["p_holm"]):
        return "not tested: run it again"

    # No difference of percents is as large as that, so none could be found.
    has_no_power = "%" in row["label"] and row["smallest"] > 100
    return f"{OPEN} (more seeds)" if row["df"] < FEWEST or has_no_power else OPEN


def find_dead_losses(run: Run) -> set[tuple[Any, ...]]:
    """Model, task and loss where no seed of it, nor of what it is compared with, has learnt."""
    cells = run.cells[run.cells["status"] == "done"]
    dead = cells["address"].isin(_without_answers(run) - _below_constant(run, cells))
    by_loss = dead.groupby([cells[name] for name in KEY]).all()

    # One live cell of the reference is enough: a loss beside it that has nothing right is worse.
    references = is_reference(by_loss.index.to_frame()["loss"], find_reference(run))
    live_pairs = {key[:2] for key in by_loss.index[~by_loss & references]}
    return {key for key in by_loss.index[by_loss] if key[:2] not in live_pairs}


def _without_answers(run: Run) -> set[str]:
    """The addresses of cells with no answer that is right, or none that can be read."""
    measured = run.metrics
    rates = {}
    for task in measured["task"].unique():
        metrics = find_metrics(str(task))
        # Of an error 0 means that all answers are right.
        if metrics and metrics[0].better == "higher":
            rates[task] = metrics[0].name

    metric = measured["metric"]
    value = measured["value"]
    is_rate = metric == measured["task"].astype("str").map(rates)
    is_wrong = is_rate & (value == 0)
    is_unread = (metric == "parse_failure_rate") & (value == 100)
    return {*measured.loc[is_wrong | is_unread, "address"]}


def _below_constant(run: Run, cells: pd.DataFrame) -> set[str]:
    """The addresses of cells with less error than the best constant answer: 0 % exact and an R² of
    0.95 is a model that learnt."""
    values = run.metrics[["address", "task", "metric", "value"]]
    compared = constants_of(run, cells).merge(values, on=["address", "metric"])
    errors = {}
    for task in compared["task"].unique():
        for metric in find_metrics(str(task)):
            errors[task, metric.name] = metric.better == "lower"

    is_below = compared["value"] < compared["constant"]
    below = compared[is_below]
    keys = zip(below["task"], below["metric"], strict=True)
    is_error = [errors[key] for key in keys]
    return {*below.loc[is_error, "address"]}
