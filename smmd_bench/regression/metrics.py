"""What is known of lm-eval's metrics by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

RIGHT_OR_WRONG = frozenset(("acc", "acc_norm", "acc_bytes", "acc_mutual_info", "exact_match", "em"))
"""Metrics that are 0 or 1 for each document."""
SHARES = RIGHT_OR_WRONG | {"f1", "rouge1", "rouge2", "rougeL", "rougeLsum"}
"""Metrics that most tasks of lm-eval give as a share of one, and we in percent; some tasks give
them in percent already, or not for each document."""


def is_share(metric: str, values: pd.Series[float] | None) -> bool:
    """Whether a metric is known by name as a share, and its documents' values, which must be there,
    are none outside 0 to 1."""
    if plain_name(metric) not in SHARES or values is None:
        return False
    known = values.dropna()
    return len(known) > 0 and bool(known.between(0, 1).all())


def plain_name(metric: str) -> str:
    """Without the filter: `exact_match,strict-match` is `exact_match`."""
    return metric.partition(",")[0]
