"""What is known of lm-eval's metrics by name."""

from __future__ import annotations

RIGHT_OR_WRONG = frozenset(("acc", "acc_norm", "acc_bytes", "acc_mutual_info", "exact_match", "em"))
"""Metrics that are 0 or 1 for each document."""
PERCENT = RIGHT_OR_WRONG | {"f1", "rouge1", "rouge2", "rougeL", "rougeLsum"}
"""Metrics that lm-eval gives as a share of one, and we in percent."""


def plain_name(metric: str) -> str:
    """Without the filter: `exact_match,strict-match` is `exact_match`."""
    return metric.partition(",")[0]
