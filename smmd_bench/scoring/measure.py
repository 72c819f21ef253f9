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
    # Without rules the key is absent: addresses from before there were rules stay.
    more = {"rules": [decoding_rules.VERSION, *rules]} if rules else {}
    return {
        **more,
        "task": [label_of(task), version_of(task)],
        "scores": score.VERSION,
        "statistics": [statistics.VERSION, statistics.RESAMPLES],
        "metrics": {
            one.name: [version_of(one), _settings(one)] for one in task.metrics()
        },
    }


def _settings(metric: Metric) -> dict[str, str]:
    settings: Sequence[Any] = fields(metric) if is_dataclass(metric) else ()
    return {setting.name: repr(getattr(metric, setting.name)) for setting in settings}


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
    task: Task,
    scores: pd.DataFrame,
    other: pd.DataFrame,
    *,
    resamples: int = statistics.RESAMPLES,
    of: Sequence[str] | None = None,
) -> dict[str, Any]:
    """How a cell's scores differ from another's, `scores` minus `other`: `comparison.json`. The
    jackknife are `pseudo_values`. `of`: the names of the metrics; None: all."""
    differences = {}
    other_frames = decoding_rules.by_decoder(other)
    for decoder, frame in decoding_rules.by_decoder(scores).items():
        # A rule of one cell alone has nothing to be compared with.
        if decoder not in other_frames:
            continue
        pair = (frame, other_frames[decoder])
        shared = statistics.common(*pair)
        columns = {*frame.columns} & {*other.columns}
        for name, metric in decoding_rules.metrics_under(task, decoder).items():
            is_asked = of is None or name in of
            if not is_asked or not columns.issuperset(metric.columns):
                continue
            difference = statistics.paired_difference(
                metric, *pair, resamples=resamples
            )
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

    numbers = _weigh_numbers(task, beams)
    mass = numbers.groupby("uid")["p"].sum()
    answers = _mean_and_median(numbers)
    frame = pd.DataFrame(index=scores.index)
    uids = scores["uid"]
    has_no_number = ~uids.isin(mass.index).to_numpy()
    for rule, by_uid in zip(decoding_rules.RULES, answers, strict=True):
        parsed = by_uid.reindex(uids).to_numpy(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            error = np.abs(parsed - scores["answer"].to_numpy(np.float64))

        parsed = np.where(has_no_number, scores["parsed"], parsed)
        error = np.where(has_no_number, scores["error"], error)
        frame[f"parsed[{rule}]"] = parsed
        frame[f"error[{rule}]"] = error
        frame[f"valid[{rule}]"] = scores["valid"].to_numpy(bool) & ~np.isnan(error)

    mass_of_row = mass.reindex(uids, fill_value=0.0)
    frame[decoding_rules.MASS] = mass_of_row.to_numpy(np.float64)
    return frame


def _mean_and_median(
    numbers: pd.DataFrame,
) -> tuple[pd.Series[float], pd.Series[float]]:
    """The mean and the median of each uid's numbers, weighed by p."""
    uid = numbers["uid"]
    share = numbers["p"] / numbers.groupby("uid")["p"].transform("sum")
    # A value beyond float64 is infinite, and an infinite mean is no mistake of ours.
    with np.errstate(over="ignore", invalid="ignore"):
        mean = (numbers["value"] * share).groupby(uid).sum()

    # The values are sorted: the median is the first one at which half of the mass is reached.
    is_reached = share.groupby(uid).cumsum() >= 0.5 - 1e-12
    median = numbers[is_reached].groupby("uid")["value"].first()
    return mean, median


def _weigh_numbers(task: Task, beams: pd.DataFrame) -> pd.DataFrame:
    """The beams that hold a number: uid, value and p, in the order of the values."""
    import pandas as pd

    # Many beams write the same text.
    by_text = {}
    for text in beams["text"].unique():
        value = score.value_of(task, text)
        by_text[text] = score.float_of(value)
    values = beams["text"].map(by_text).astype("float64")
    p = np.exp(beams["log_probability"].to_numpy(np.float64))
    numbers = pd.DataFrame({"uid": beams["uid"], "value": values, "p": p})

    # Stable, so that equal values keep the order of beams, and sums their last bit.
    return numbers[numbers["value"].notna()].sort_values(
        ["uid", "value"], kind="stable"
    )


def _counts(scores: pd.DataFrame, *, numbers: bool) -> dict[str, Any]:
    names = ["text_match", "truncated"]
    if numbers:
        names = ["valid", "exact", *names]
    counts: dict[str, Any] = {}
    for name in names:
        if name in scores:
            counts[name] = int(scores[name].sum())
    if numbers:
        categories = scores["category"].value_counts()
        counts["categories"] = {name: int(categories[name]) for name in CATEGORIES}
    return counts
