"""Distances between values, rescaled: what two authors' packages do alike."""

from __future__ import annotations

import torch
from torch import Tensor


def more_than_one(value: float) -> str | None:
    """Check of a parameter: > 1."""
    return None if 1 < value < float("inf") else "must be > 1"


def distance_range(values: Tensor) -> tuple[float, float]:
    """The smallest distance above 0 (0: there is none) and the largest, of ascending values [N]."""
    gaps = values.diff()
    nearest = float(gaps[gaps > 0].min()) if gaps.any() else 0.0
    return nearest, float(values[-1] - values[0])


def squashed(distance: Tensor, nearest: float, farthest: float, largest: float | None) -> Tensor:
    """Distances mapped linearly: 0 stays 0, `nearest` becomes 1 and `farthest` becomes `largest`.

    Elementwise. As they are where `largest` is None, or where there is but one distance above 0.
    """
    if largest is None or farthest <= nearest:
        return distance
    slope = (largest - 1) / (farthest - nearest)
    return torch.where(distance > 0, 1 + (distance - nearest) * slope, distance)
