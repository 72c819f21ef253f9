"""Whether a loss is better than cross-entropy: the difference, its test, and what it could show."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from smmd_bench.contracts import Metric, Run
from smmd_bench.publishing.tables import number

from ._cells import metrics_of
from ._gains import first_metric, gains, seed_gains
from ._significance import LEVEL, holm

POWER = 0.8
_POINTS = 100
"""A rate cannot differ by more."""
_RATES = ("parse_failure_rate", "truncation_rate")


def judged_metrics(task: str) -> list[Metric]:
    """The first metric of a task, and the first error that it measures, such as MAE."""
    first = first_metric(task)
    errors = [m for m in metrics_of(task) if m.better == "lower" and m.name not in _RATES]
    return list({m.name: m for m in ([first] if first else []) + errors[:1]}.values())


def verdicts(run: Run) -> pd.DataFrame:
    """One row a model, task, loss and metric of `judged_metrics`, where there is a difference.

    The columns of `_gains.gains`; p_holm (corrected over the losses of a model, task and metric),
    smallest (see `smallest_difference`, at the level that the first of so many losses must pass)
    and verdict: better, worse, or "cannot tell (below ±4.5)".
    """
    by_task = {str(task): judged_metrics(str(task)) for task in run.cells["task"].unique()}
    seeds = seed_gains(run, by_task.__getitem__)
    if seeds.empty:
        return seeds
    data = gains(seeds)
    families = data.groupby(["model", "task", "metric"], observed=True)
    data["p_holm"] = families["p"].transform(holm)
    sizes = families["p"].transform("count")
    data["smallest"] = [
        smallest_difference(row, LEVEL / max(1, size))
        for row, size in zip(data.to_dict("records"), sizes, strict=True)
    ]
    data["verdict"] = [_verdict(row) for row in data.to_dict("records")]
    return data


def smallest_difference(gain: dict[Any, Any], level: float) -> float:
    """The true difference that a test at this level finds with a probability of `POWER`.

    Of several seeds by the t-test's power with their standard deviation; of one seed's exact match
    by that of McNemar's exact test at the discordance that was seen, of other metrics by the
    bootstrap's standard error. Missing where the differences do not vary.
    """
    from scipy.optimize import brentq
    from scipy.stats import nct, norm, t

    if gain["seeds"] == 1 and not math.isnan(gain["discordant"]):
        return _smallest_of_mcnemar(int(gain["discordant"]), int(gain["n"]), level)
    if not gain["error"] > 0:
        return math.nan
    if gain["seeds"] == 1:
        return float(gain["error"] * (norm.isf(level / 2) + norm.isf(1 - POWER)))
    df = gain["seeds"] - 1
    critical = t.isf(level / 2, df)
    shift = brentq(lambda d: nct.sf(critical, df, d) - POWER, 0, 10 * critical + 10)
    return float(gain["error"] * shift)


def _smallest_of_mcnemar(discordant: int, n: int, level: float) -> float:
    """In points, of n examples. Where so few are discordant that the test can never pass the level,
    the fewest discordant examples that can, all on one side."""
    from scipy.optimize import brentq
    from scipy.stats import binom

    fewest = math.ceil(1 - math.log2(level))  # 2 * 0.5 ** fewest <= level
    if discordant < fewest:
        return 100 * fewest / n
    critical = int(binom.isf(level / 2, discordant, 0.5)) + 1
    share = brentq(
        lambda d: binom.sf(critical - 1, discordant, (1 + d) / 2) - POWER, 0, 1, xtol=1e-6
    )
    return float(100 * discordant * share / n)


def _verdict(gain: dict[Any, Any]) -> str:
    if gain["p_holm"] < LEVEL:
        return "better" if (gain["difference"] > 0) == (gain["better"] == "higher") else "worse"
    if math.isnan(gain["smallest"]):
        return "cannot tell"
    if "%" in gain["label"] and gain["smallest"] > _POINTS:
        return "cannot tell (too few seeds)"
    return f"cannot tell (below ±{number(gain['smallest'], digits_of(gain['label']))})"


def digits_of(label: str) -> int:
    """The decimals of a metric's difference."""
    return 1 if "%" in label else 2
