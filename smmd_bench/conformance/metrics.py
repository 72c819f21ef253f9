"""The checks of a task's metrics, on completions that are right, wrong and empty."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..contracts import Example, Metric, Task
from ..scoring.score import score_frame
from .checks import require

if TYPE_CHECKING:
    from numpy.typing import NDArray

_RESAMPLES = 4


def completions(examples: Sequence[Example], texts: Sequence[str]) -> pd.DataFrame:
    """The frame of completions that a cell would have."""
    frame = pd.DataFrame(
        {
            "uid": [e.uid for e in examples],
            "prompt": [e.prompt for e in examples],
            "target": [e.target for e in examples],
            "completion": list(texts),
            "finish_reason": "stop",
            "completion_tokens": 1,
            "prompt_tokens": 1,
        }
    )
    return frame.join(pd.DataFrame([dict(e.attributes) for e in examples], index=frame.index))


def check_metrics(task: Task, examples: Sequence[Example]) -> str:
    """Raises ViolationError; returns what was looked at."""
    metrics = task.metrics()
    require(len(metrics) > 0, "metrics() is empty: the first one selects the checkpoint")
    names = [metric.name for metric in metrics]
    require(len(set(names)) == len(names), f"two metrics have one name: {', '.join(names)}")
    targets = [e.target for e in examples]
    cases = {
        "right": score_frame(task, completions(examples, targets)),
        "wrong": score_frame(task, completions(examples, [*targets[1:], targets[0]])),
        "empty": score_frame(task, completions(examples, [""] * len(targets))),
    }
    for metric in metrics:
        require(isinstance(metric, Metric), f"{metric!r} lacks an attribute of Metric")
        lacking = {*metric.columns, *([metric.subset] if metric.subset else [])}
        lacking -= {*cases["right"].columns}
        require(not lacking, f"{metric.name} needs the column {', '.join(sorted(lacking))}")
        values = {name: _value(metric, frame) for name, frame in cases.items()}
        _check_bounds(metric, values)
        _check_axis(metric, _columns(metric, cases["wrong"]))
    first = _value(metrics[0], cases["right"])
    require(math.isfinite(first), f"{names[0]} has no value for right answers, and it selects")
    return f"{', '.join(names)}: bounded, best for right answers, vectorised"


def _check_bounds(metric: Metric, values: dict[str, float]) -> None:
    for name, value in values.items():
        require(not math.isinf(value), f"{metric.name} is infinite for {name} answers")
        if "(%)" in metric.label and math.isfinite(value):
            require(
                -1e-9 <= value <= 100 + 1e-9,
                f"{metric.name} is {value:g} for {name} answers, and its label says percent",
            )
    worse = values["wrong"] - values["right"]
    sign = 1 if metric.better == "higher" else -1
    require(
        not sign * worse > 1e-9,
        f"{metric.name} is {values['wrong']:g} for wrong answers and {values['right']:g} for right "
        f"ones, but {metric.better} is better",
    )


def _check_axis(metric: Metric, columns: list[NDArray[np.float64]]) -> None:
    """Several resamples at once, along either axis, against one after the other."""
    n = len(columns[0]) if columns else 0
    if not n:
        return
    rows = np.random.default_rng(0).integers(n, size=(_RESAMPLES, n))  # [R, n]
    together = [column[rows] for column in columns]
    loop = [float(metric.statistic(*(c[at] for c in columns))) for at in rows]
    for axis, given in ((-1, together), (0, [c.T for c in together])):
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
