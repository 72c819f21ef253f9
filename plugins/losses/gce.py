"""GCE: Gaussian cross-entropy (Wang et al. 2025, Token-Mol; the paper's section 4.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor

from smmd_bench.contracts import (
    NumericLoss,
    NumericTargets,
    NumericVocabulary,
    bandwidth,
    factor,
    non_negative,
    parameter,
)


@dataclass(frozen=True)
class GaussianCrossEntropy:
    """L_GCE in place of L_CE at numeric positions, L_CE at all others.

    At a position whose target y is in V_num, with p = softmax(l[V_num]) (eq:pq_p),

        q_i ~ exp(-(v_i - v_{pi(y)})^2 / (2 sigma^2)),  sum_i q_i = 1
        L_GCE = -sum_i q_i log p_i

    Its least value is the entropy of q, not zero: at sigma = 0.5 the best p gives 0.79 to an inner
    target. As the paper prints it, p knows nothing of the tokens outside V_num, so at numeric
    positions nothing keeps a model from writing other tokens; it has to have learnt that before.

    `support=vocabulary` takes p over all tokens. So does the authors' code (github.com/jkwang93/
    Token-Mol, mol_property_reg_finetune.py at ca6ef2b), which also has its own number tokens
    (0.00 to 1.00, a hundredth apart), sigma = 2 of these steps, and doubles the target's density
    before it normalises q. `add_cross_entropy` keeps L_CE everywhere and adds lambda L_GCE.

    Two terms of CoordExp (github.com/Pein2017/CoordExp, src/coord_tokens/soft_ce_w1.py at 9119666
    and src/trainers/losses/coord_soft_ce_w1.py at 26d44d6), with F the cumulative sums over V_num:

        emd sum_{k < N} (v_{k+1} - v_k) |F_p(k) - F_q(k)| / N        Wasserstein-1 of p and q
        -gate log sum_{i in V_num} softmax(l)_i                      keeps probability on V_num

    `gate=1` is `support=vocabulary`. There both weights and sigma = 2 are settings, the bins are
    0 to 999, the target can be cut off, logits are clamped, and a temperature divides them.
    """

    name: ClassVar[str] = "gce"
    version: ClassVar[int] = 1
    relative_scale: ClassVar[dict[int, float]] = {10: 1, 1000: 1}
    sigma: float = parameter(
        0.5, "width of the target, in units of value", check=bandwidth
    )
    support: Literal["numeric", "vocabulary"] = parameter(
        "numeric", "what p is normalised over"
    )
    add_cross_entropy: bool = parameter(
        False, "keep the cross-entropy at numeric positions, too"
    )
    weight: float = factor(1.0)
    emd: float = parameter(
        0.0, "weight of the distance", check=non_negative, added_later=True
    )
    gate: float = parameter(
        0.0, "weight of the mass term", check=non_negative, added_later=True
    )

    def __post_init__(self) -> None:
        if self.weight != 1.0 and not self.add_cross_entropy:
            raise ValueError(
                "lambda weights what is added: add add_cross_entropy=true."
            )

    @property
    def replaces_cross_entropy(self) -> bool:
        """Unless it is added to it."""
        return not self.add_cross_entropy

    def bind(self, vocabulary: NumericVocabulary) -> _GaussianTerm:
        """The loss with the values of V_num as a module."""
        return _GaussianTerm(self, vocabulary)


class _GaussianTerm(NumericLoss):
    separable = True

    def forward(self, numeric: NumericTargets) -> tuple[Tensor, int]:
        x = numeric.logits  # [M, N]
        loss = self.loss
        v = self.values.to(x.dtype)  # [N]
        distance = v - v[numeric.target, None]  # [M, N]
        width = 2 * loss.sigma**2
        exponent = -(distance**2) / width  # [M, N]
        q = exponent.softmax(-1)  # [M, N]
        partition = numeric.partition(loss.support)  # [M]
        cross_entropy = partition - (q * x).sum(-1)  # [M]
        total = cross_entropy.sum()

        if loss.gate:
            # [M], -log of the mass on V_num
            outside = numeric.log_partition - x.logsumexp(-1)
            total = total + loss.gate * outside.sum()

        if loss.emd:
            p = x.softmax(-1)  # [M, N]
            F = (p - q).cumsum(-1)  # [M, N], F_p - F_q
            wasserstein = F[:, :-1].abs() @ v.diff()  # [M]
            weight = loss.emd / len(v)
            total = total + weight * wasserstein.sum()
        return total, numeric.target.numel()
