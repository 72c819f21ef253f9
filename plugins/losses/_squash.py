"""Distances between values, rescaled: what two authors' packages do alike."""

import torch
from torch import Tensor


def more_than_one(value: float) -> str | None:
    """Check of a parameter: > 1."""
    return None if 1 < value < float("inf") else "must be > 1"


def squash_distances(distance: Tensor, values: Tensor, largest: float | None) -> Tensor:
    """Distances between ascending values [N], mapped linearly: 0 stays 0, the smallest above it
    becomes 1 and the largest `largest`. As they are where it is None, or where there is but one."""
    gaps = values.diff()
    if largest is None or int((gaps > 0).sum()) < 2:
        return distance
    nearest, farthest = float(gaps[gaps > 0].min()), float(values[-1] - values[0])
    slope = (largest - 1) / (farthest - nearest)
    return torch.where(distance > 0, 1 + (distance - nearest) * slope, distance)
