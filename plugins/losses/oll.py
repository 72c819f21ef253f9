"""OLL: the ordinal log-loss (Castagnos, Mihelich and Dognin 2022, COLING)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from smmd_bench.contracts import (
    NumericLoss,
    NumericTargets,
    NumericVocabulary,
    factor,
    parameter,
    positive,
)


@dataclass(frozen=True)
class OrdinalLogLoss:
    """L = L_CE + lambda L_OLL.

    At a position whose target y is in V_num, with p = softmax(l[V_num]) (eq:pq_p),

        L_OLL = -sum_i log(1 - p_i) |v_i - v_{pi(y)}|^alpha

    averaged over numeric positions. Where all p_i are small it is NTL, if alpha = 1. Where the
    model is sure of a wrong value, NTL's gradient vanishes with the softmax's; this one stays.

    Only the abstract of the paper could be opened; the formula is that of its code (github.com/
    glanceable-io/ordinal-log-loss, src/loss_functions.py at 1825172). There alpha is 1, 1.5 or 2,
    the classes are a text's labels, the loss stands in place of cross-entropy, and it is infinite
    as soon as a p_i rounds to 1; a variant divides the distances by their sums. lambda = 2 is that
    of ntl, so that the two differ in the logarithm alone; no source gives one.
    """

    name: ClassVar[str] = "oll"
    version: ClassVar[int] = 1
    replaces_cross_entropy: ClassVar[bool] = False
    relative_scale: ClassVar[dict[int, float]] = {10: 3.02, 1000: 96.6}
    weight: float = factor(2.0)
    alpha: float = parameter(1.0, "power of the distance", check=positive)

    def bind(self, vocabulary: NumericVocabulary) -> _OrdinalLogTerm:
        """The loss with the values of V_num as a module."""
        return _OrdinalLogTerm(self, vocabulary)


class _OrdinalLogTerm(NumericLoss):
    separable = True

    def forward(self, numeric: NumericTargets) -> tuple[Tensor, int]:
        x = numeric.logits  # [M, N]
        v = self.values.to(x.dtype)  # [N]
        distance = (v - v[numeric.target, None]).abs()  # [M, N]
        cost = distance**self.loss.alpha  # [M, N]

        # Only the largest p can be above 1/2. There, 1 - p is the mass of the others, which needs
        # their logits: 1 - p in floating point is 0 long before it is 0.
        top = x.argmax(-1, keepdim=True)  # [M, 1]
        losers = x.scatter(1, top, -torch.inf)  # [M, N]
        mass = losers.logsumexp(-1, keepdim=True)  # [M, 1]
        odds = mass - x.gather(1, top)  # [M, 1], against the largest

        # A p of 1 would make a gradient of infinity times zero, so the largest is 0 here.
        p = x.softmax(-1)  # [M, N]
        p = p.scatter(1, top, 0)
        log_wrong = (-p).log1p()  # [M, N], log(1 - p)
        log_wrong = log_wrong.scatter(1, top, logsigmoid(odds))
        return -(cost * log_wrong).sum(), numeric.target.numel()
