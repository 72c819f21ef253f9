"""Cramer: the CRPS over numeric tokens (Gneiting and Raftery 2007), proper, with distances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from smmd_bench.contracts import NumericLoss, NumericTargets, NumericVocabulary, factor


@dataclass(frozen=True)
class CramerDistance:
    """L = L_CE + lambda L_Cramer.

    At a position whose target y is in V_num, with p = softmax(l[V_num]) (eq:pq_p) and the
    cumulative F_p(k) = sum_{i <= k} p_i, F_y(k) = [k >= pi(y)], over the values v_1 <= ... <= v_N,

        L_Cramer = sum_{k < N} (v_{k+1} - v_k) (F_p(k) - F_y(k))^2

    averaged over numeric positions: the squared Cramer distance of p to the one-hot target, which
    is the continuous ranked probability score of p, half its squared energy distance, and
    E|v - v_y| - 1/2 E|v - v'|. It is strictly proper and in units of value, has no bandwidth, and
    does not saturate. NTL is its first term alone, and therefore not strictly proper: the
    expectation of |v - v_y| over targets is least where p has all mass on their median.

    Bellemare et al. 2017 (arXiv 1705.10743) train with it; no source has it for numeric tokens, or
    a lambda. At lambda = 1 it is a quarter of the default `ntl`, at either N.
    """

    name: ClassVar[str] = "cramer"
    version: ClassVar[int] = 1
    replaces_cross_entropy: ClassVar[bool] = False
    relative_scale: ClassVar[dict[int, float]] = {10: 0.717, 1000: 24.1}
    weight: float = factor(1.0)

    def bind(self, vocabulary: NumericVocabulary) -> _CramerTerm:
        """The distance with the values of V_num as a module."""
        return _CramerTerm(self, vocabulary)


class _CramerTerm(NumericLoss):
    separable = True

    def forward(self, numeric: NumericTargets) -> tuple[Tensor, int]:
        # Beyond the last value both cumulatives are 1.
        F = numeric.residual().cumsum(-1)[:, :-1]  # [M, N-1], F_p - F_y
        gaps = self.values.diff().to(F.dtype)  # [N-1]
        distance = F.square() @ gaps  # [M]
        return distance.sum(), numeric.target.numel()
