"""The squared earth mover's distance (Hou, Yu & Samaras 2016, arXiv 1611.05916) of numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from smmd_bench.contracts import (
    NumericLoss,
    NumericTargets,
    NumericVocabulary,
    non_negative,
    parameter,
)
from torch import Tensor


@dataclass(frozen=True)
class SquaredEarthMover:
    """L = L_CE + lambda L_EMD2.

    The source compares ordered classes by their cumulative distributions, with every step from one
    class to the next alike: sum_i (CDF_i(p) - CDF_i(t))^2. Numeric tokens have values, so a step
    counts here as far as it goes. With p = softmax(l[V_num]), the target y, and v_1 <= ... <= v_N,

        L_EMD2 = sum_{i<N} (v_{i+1} - v_i) (P_i - [v_{pi(y)} <= v_i])^2 / (v_N - v_1)
        P_i = p_1 + ... + p_i

    At any N that is 0 for the target, and 1 for one end of V_num when the target is the other; for
    equal steps it is the source's sum over N - 1. (Times the range it is half the squared energy
    distance, an MMD with the kernel -|v_i - v_j|.) lambda = 10 is chosen here, so that at an even
    guess over ten digits the auxiliary has about the size of the cross-entropy (0.8 of it).
    """

    name: ClassVar[str] = "squared_emd"
    version: ClassVar[int] = 1
    replaces_cross_entropy: ClassVar[bool] = False
    relative_scale: ClassVar[dict[int, float]] = {10: 0.80, 1000: 0.24}

    weight: float = parameter(10.0, "weight of the auxiliary", name="lambda", check=non_negative)

    def bind(self, vocabulary: NumericVocabulary) -> SquaredEarthMoverTerm:
        """The distance with the values of V_num as a module."""
        return SquaredEarthMoverTerm(self, vocabulary)


class SquaredEarthMoverTerm(NumericLoss):
    """L_EMD2, summed over positions."""

    separable = True  # a sum over positions, so it may be evaluated a few at a time
    steps: Tensor  # [N - 1], as shares of the range

    def __init__(self, loss: SquaredEarthMover, vocabulary: NumericVocabulary) -> None:
        super().__init__(loss, vocabulary)
        steps = vocabulary.values.diff()  # ascending, so none is negative
        self.constant("steps", steps / steps.sum().clamp(min=1e-9))

    def forward(self, numeric: NumericTargets) -> tuple[Tensor, int]:
        """Sum over numeric positions, and how many there are."""
        steps = self.steps.to(numeric.logits)  # in the logits' dtype, on their device
        below = numeric.logits.softmax(-1).cumsum(-1)[:, :-1]  # [M, N - 1], P_i
        index = torch.arange(len(steps), device=steps.device)
        wanted = (numeric.target[:, None] <= index).to(below)  # [M, N - 1], the target's P_i
        return ((below - wanted) ** 2 @ steps).sum(), numeric.target.numel()
