"""What the best constant answer gets on the same examples: the least that a model must beat."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..contracts import Metric

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray


def constant_value(metric: Metric, answers: NDArray[np.float64]) -> float | None:
    """The metric of the best answer that is the same for all examples.

    answers: [n] float64, the answers of all examples. The most frequent one has the best exact
    match, and R² is 0 for their mean, by definition. Of a metric of errors the better of median and
    mean: they have the least absolute and the least squared error. None for a metric of anything
    else, and where an example has no number as its answer.
    """
    # Not finite is what holds no number: a constant of the rest would say too much.
    if not len(answers) or not np.isfinite(answers).all():
        return None

    # A metric is known by its columns: plugins name theirs as they like.
    if metric.columns == ("exact",):
        _, counts = np.unique(answers, return_counts=True)
        return float(100 * counts.max() / len(answers))

    if metric.columns == ("error",):
        with np.errstate(over="ignore"):
            constants = np.array([np.median(answers), answers.mean()])
            errors = np.abs(answers - constants[:, None])  # [2, n]
        values = metric.statistic(errors, axis=-1)
        return float(values.min() if metric.better == "lower" else values.max())

    is_r_squared = metric.columns == ("answer", "parsed")
    return 0.0 if is_r_squared else None


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
