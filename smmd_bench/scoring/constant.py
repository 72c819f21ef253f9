"""What the best constant answer gets on the same examples: the least that a model must beat."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..contracts import Metric

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray


_PROBE = np.array([1.0, 2.0, 10.0, 10_000.0])
"""Numbers that tell a mean from other statistics."""


def constant_value(metric: Metric, answers: NDArray[np.float64]) -> float | None:
    """The metric of the best answer that is the same for all examples.

    answers: [n] float64, the answers of all examples. The most frequent one has the best exact
    match, the median the least mean of errors, and R² is 0 for their mean, by definition. None for
    a metric of anything else, as the root of squared errors, and where an example has no number as
    its answer.
    """
    # Not finite is what holds no number: a constant of the rest would say too much.
    if not len(answers) or not np.isfinite(answers).all():
        return None

    # A metric is known by what it computes: plugins name theirs as they like.
    if metric.subset not in (None, "valid"):
        return None
    if metric.columns == ("exact",):
        is_share = np.isclose(metric.statistic(_PROBE), 100 * _PROBE.mean())
        if not is_share:
            return None
        _, counts = np.unique(answers, return_counts=True)
        return float(100 * counts.max() / len(answers))

    if metric.columns == ("error",):
        # Another statistic of the errors has another best answer.
        if not np.isclose(metric.statistic(_PROBE), _PROBE.mean()):
            return None
        errors = np.abs(answers - np.median(answers))  # [n]
        return float(metric.statistic(errors))

    if metric.columns == ("answer", "parsed"):
        mean = np.full_like(_PROBE, _PROBE.mean())
        of_mean = metric.statistic(_PROBE, mean)
        of_truth = metric.statistic(_PROBE, _PROBE)
        return 0.0 if np.allclose([of_mean, of_truth], [0, 1]) else None
    return None


def answer_by_constant(scores: pd.DataFrame) -> pd.DataFrame:
    """A scored frame in which the median answers where no answer can be read.

    So an epoch that answers one example of a hundred, and that one well, is not the one with the
    least error.
    """
    median = scores["answer"].median()
    filled = scores.assign(
        parsed=scores["parsed"].where(scores["valid"], median),
        error=scores["error"].where(scores["valid"], (scores["answer"] - median).abs()),
    )
    return filled.assign(valid=filled["error"].notna())
