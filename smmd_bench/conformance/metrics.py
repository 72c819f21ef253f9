"""The checks of a task's metrics, on completions that are right, wrong and empty."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..contracts import Completion, Example, Metric, Task
from ..decoding.decode import completions_frame
from ..scoring.score import score_frame
from .checks import fail, require

_RESAMPLES = 4
_SPELLINGS: Mapping[str, Callable[[str], str]] = {
    "blank lines before it": lambda text: f"\n\n \n{text}",
    "a byte-order mark before it": lambda text: f"\ufeff{text}",
    "lines that end in \\r\\n": lambda text: f"{text}\n".replace("\n", "\r\n"),
    "non-breaking spaces": lambda text: text.replace(" ", "\u00a0"),
    "an end-of-text token after it": lambda text: f"{text}<|im_end|>",
}
"""What a person does not see in a completion."""
_READ = ("parsed", "valid", "exact")


def completions(examples: Sequence[Example], texts: Sequence[str]) -> pd.DataFrame:
    """The frame of completions that a cell would have."""
    answers = [Completion(text, (0,), "stop") for text in texts]
    return completions_frame(examples, answers, [1] * len(answers))


def check_metrics(task: Task, examples: Sequence[Example]) -> str:
    """Raises ViolationError; returns what it looked at."""
    metrics = task.metrics()
    require(len(metrics) > 0, "metrics() is empty: the first one selects the checkpoint")
    names = [metric.name for metric in metrics]
    require(len(set(names)) == len(names), f"two metrics have one name: {', '.join(names)}")
    targets = [e.target for e in examples]
    texts = {"right": targets, "wrong": [*targets[1:], targets[0]], "empty": [""] * len(targets)}
    cases = {name: score_frame(task, completions(examples, text)) for name, text in texts.items()}
    for metric in metrics:
        require(isinstance(metric, Metric), f"{metric!r} lacks an attribute of Metric")
        lacking = {*metric.columns, *([metric.subset] if metric.subset else [])}
        lacking -= {*cases["right"].columns}
        require(not lacking, f"{metric.name} needs the column {', '.join(sorted(lacking))}")
        _check_bounds(metric, {name: _value(metric, frame) for name, frame in cases.items()})
        _check_axis(metric, _columns(metric, cases["wrong"]))
    first = _value(metrics[0], cases["right"])
    require(math.isfinite(first), f"{names[0]} has no value for right answers, and it selects")
    return f"{', '.join(names)}: bounded, best for right answers, vectorised"


def check_spellings(task: Task, examples: Sequence[Example]) -> str:
    """Raises ViolationError if a spelling that looks the same changes an answer, or what the metric
    that selects reads of it; returns what it looked at."""
    targets = [e.target for e in examples]
    plain = score_frame(task, completions(examples, targets))
    columns = {*_READ, *task.metrics()[0].columns} & {*plain.columns}
    for what, spell in _SPELLINGS.items():
        found = score_frame(task, completions(examples, [spell(text) for text in targets]))
        for name in sorted(columns):
            same = (found[name] == plain[name]) | (found[name].isna() & plain[name].isna())
            if not same.all():
                at = int(same.argmin())
                fail(
                    f"{what} of {examples[at].uid} change `{name}` from {plain[name][at]} to "
                    f"{found[name][at]}: parse plain_text(completion), from smmd_bench.contracts"
                )
    return f"{', '.join(_SPELLINGS)} change no answer"


def _check_bounds(metric: Metric, values: dict[str, float]) -> None:
    for name, value in values.items():
        require(not math.isinf(value), f"{metric.name} is infinite for {name} answers")
        require(
            "(%)" not in metric.label or math.isnan(value) or -1e-9 <= value <= 100 + 1e-9,
            f"{metric.name} is {value:g} for {name} answers, and its label says percent",
        )
    worse = values["wrong"] - values["right"]
    require(
        not (worse if metric.better == "higher" else -worse) > 1e-9,
        f"{metric.name} is {values['wrong']:g} for wrong answers and {values['right']:g} for right "
        f"ones, but {metric.better} is better",
    )


def _check_axis(metric: Metric, columns: list[NDArray[np.float64]]) -> None:
    """Several resamples at once, along either axis, against one after the other."""
    n = len(columns[0]) if columns else 0
    if not n:
        return
    rows = np.random.default_rng(0).integers(n, size=(_RESAMPLES, n))  # [R, n]
    loop = [float(metric.statistic(*(column[at] for column in columns))) for at in rows]
    resampled = [column[rows] for column in columns]
    for axis, given in ((-1, resampled), (0, [c.T for c in resampled])):
        found: Any = np.asarray(metric.statistic(*given, axis=axis))
        require(
            found.shape == (_RESAMPLES,),
            f"{metric.name}.statistic(axis={axis}) gives the shape {list(found.shape)} for "
            f"{_RESAMPLES} resamples: reduce `axis` of every column",
        )
        require(
            bool(np.allclose(found, loop, rtol=1e-9, atol=1e-9, equal_nan=True)),
            f"{metric.name}.statistic(axis={axis}) differs from one resample at a time",
        )


def _columns(metric: Metric, frame: pd.DataFrame) -> list[NDArray[np.float64]]:
    if metric.subset is not None:
        frame = frame[frame[metric.subset]]
    return [frame[name].to_numpy(np.float64) for name in metric.columns]


def _value(metric: Metric, frame: pd.DataFrame) -> float:
    """NaN where no row counts."""
    columns = _columns(metric, frame)
    return float(metric.statistic(*columns)) if len(columns[0]) else math.nan
