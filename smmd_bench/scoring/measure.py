"""The measure stage: what `scores.parquet`, `metrics.json` and `comparison.json` say of a cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..contracts import Metric, Task
from ..plugin_system.checked_task import label_of
from ..plugin_system.plugin_source import version_of
from . import crossed, decoding_rules, score, statistics
from .categories import CATEGORIES

if TYPE_CHECKING:
    import pandas as pd

COMPARISON = f"{statistics.VERSION}, {crossed.VERSION}"
"""The version of what `compare` says of two measurements."""


def measure_identity(task: Task, rules: Sequence[str] = ()) -> dict[str, Any]:
    """What can change a measurement besides the completions; a part of the measure address."""
    more = {"rules": [decoding_rules.VERSION, *rules]} if rules else {}
    return {
        **more,
        "task": [label_of(task), version_of(task)],
        "scores": score.VERSION,
        "statistics": [statistics.VERSION, statistics.RESAMPLES],
        "metrics": {one.name: [version_of(one), _settings(one)] for one in task.metrics()},
    }


def _settings(metric: Metric) -> dict[str, str]:
    known: Sequence[Any] = fields(metric) if is_dataclass(metric) else ()
    return {one.name: repr(getattr(metric, one.name)) for one in known}


def measure(
    task: Task,
    completions: pd.DataFrame,
    *,
    beams: pd.DataFrame | None = None,
    rules: Sequence[str] = (),
    resamples: int = statistics.RESAMPLES,
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The scored frame of a cell's completions, and the content of its `metrics.json`:
    {"n", "metrics": {name: {"value", "low", "high", "n"}}, "counts"}, None where there is no value.

    With beams, the columns and metrics of `rules` come on top.
    """
    scores = score.score_frame(task, completions)
    if beams is not None:
        answered = rule_columns(task, beams, scores)
        scores = scores.join(answered[decoding_rules.columns_of(rules)])
    return scores, {
        "n": len(scores),
        "metrics": statistics.metric_values(task, scores, resamples=resamples),
        "counts": _counts(scores, numbers=score.reads_numbers(task)),
    }


def compare(
    task: Task, scores: pd.DataFrame, other: pd.DataFrame, *,
    resamples: int = statistics.RESAMPLES, of: Sequence[str] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """How a cell's scores differ from another's, `scores` minus `other`: `comparison.json`. The
    jackknife are `pseudo_values`. `of`: the names of the metrics; None: all."""
    differences = {}
    mine, others = map(decoding_rules.by_decoder, (scores, other))
    for decoder in [name for name in mine if name in others]:
        both = mine[decoder], others[decoder]
        shared = statistics.common(*both)
        for name, metric in decoding_rules.metrics_under(task, decoder).items():
            known = set(metric.columns) <= {*both[0].columns} & {*other.columns}
            if not known or (of is not None and name not in of):
                continue
            difference = statistics.paired_difference(metric, *both, resamples=resamples)
            values = crossed.pseudo_values(metric, *shared)
            differences[name] = {**asdict(difference), "jackknife": values}
    return {"metrics": differences}


def rule_columns(task: Task, beams: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """What the mean and the median of p(number) answer to the examples of a scored frame.

    p(number) is that of the completions that a beam search finds, divided by their sum.
    `parsed[RULE]`, `error[RULE]` and `valid[RULE]` as the scored frame has them of the greedy
    completion; and number_mass, the probability of all beams that hold a number. Decoders are
    compared on the same examples: a rule counts where the greedy completion is a number, and gives
    that number where no beam holds one. `beams` has uid, text and log_probability.
    """
    import pandas as pd

    known = {text: score.value_of(task, text) for text in beams["text"].unique()}
    values = beams["text"].map({text: score.float_of(value) for text, value in known.items()})
    weighed = pd.DataFrame({"uid": beams["uid"], "value": values.astype("float64")})
    weighed["p"] = np.exp(beams["log_probability"].to_numpy(np.float64))
    weighed = weighed[weighed["value"].notna()].sort_values(["uid", "value"], kind="stable")
    mass = weighed.groupby("uid")["p"].sum()
    share = weighed["p"] / weighed.groupby("uid")["p"].transform("sum")
    with np.errstate(over="ignore", invalid="ignore"):
        mean = (weighed["value"] * share).groupby(weighed["uid"]).sum()
    reached = share.groupby(weighed["uid"]).cumsum() >= 0.5 - 1e-12
    median = weighed[reached].groupby("uid")["value"].first()
    found: dict[str, Any] = {}
    unknown = ~scores["uid"].isin(mass.index).to_numpy()
    for rule, by_uid in zip(decoding_rules.RULES, (mean, median), strict=True):
        parsed = by_uid.reindex(scores["uid"]).to_numpy(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            error = np.abs(parsed - scores["answer"].to_numpy(np.float64))
        parsed = np.where(unknown, scores["parsed"], parsed)
        error = np.where(unknown, scores["error"], error)
        found |= {f"parsed[{rule}]": parsed, f"error[{rule}]": error}
        found[f"valid[{rule}]"] = scores["valid"].to_numpy(bool) & ~np.isnan(error)
    found[decoding_rules.MASS] = mass.reindex(scores["uid"], fill_value=0.0).to_numpy(np.float64)
    return pd.DataFrame(found, index=scores.index)


def _counts(scores: pd.DataFrame, *, numbers: bool) -> dict[str, Any]:
    names = (*(("valid", "exact") if numbers else ()), "text_match", "truncated")
    flags = {name: int(scores[name].sum()) for name in names if name in scores.columns}
    if not numbers:
        return flags
    categories = scores["category"].value_counts()
    return {
        **flags, "categories": {name: int(categories[name]) for name in CATEGORIES}
    }  # fmt: skip
