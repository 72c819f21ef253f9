"""SMMD: smoothed maximum mean discrepancy over numeric tokens, the paper's method (section 3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from smmd_bench.contracts import (
    NumericLoss,
    NumericTargets,
    NumericVocabulary,
    bandwidth,
    between,
    factor,
    non_negative,
    parameter,
)

from ._squash import more_than_one, squash_distances


def _bandwidths(values: tuple[float, ...]) -> str | None:
    for value in values:
        if complaint := bandwidth(value):
            return f"{complaint}, each"
    return None


@dataclass(frozen=True)
class SmoothMMD:
    """L = L_CE + lambda L_SMMD (eq:loss).

    At a position whose target y is in V_num, with the residual r = softmax(l[V_num]) - e_{pi(y)}
    (eq:residual_r),

        L_SMMD = r^T K r + alpha r^T L r = r^T (K + alpha L) r

    r^T K r is the squared MMD of prediction and target (eq:loss_mmd), and r^T L r, with the
    Laplacian L = D - K and deg_i = sum_j K_ij, the Dirichlet energy 1/2 sum_ij K_ij (r_i - r_j)^2
    of the residual. K_ij is the mean over the bandwidths Sigma of exp(-|v_i - v_j|^2 / 2 sigma^2)
    (eq:k_ij). By default alpha = 1 / (2 mean degree).

    The ablations: `term` leaves out a half of the loss (tab:ablation_mmd_sobolev); `kernel` makes K
    blind to the values (tab:kernel_ablation), by shuffling them among the tokens or at random
    (app:random_psd_kernel). A random K has negative entries, so it makes no graph: MMD only.

    The authors' code (github.com/Zuozhuo/smmd-loss at 581fde6) is the same at N = 10. It differs:
    by default it squashes distances so that the nearest value is at 1 and the farthest at 9
    (`squash_factor=9`; here `squash=9`), of which the paper says nothing: no change for digits, but
    another kernel at N = 1000, where the paper's rows may have used either. Its shuffled and random
    kernels come from torch's generator with seed 42, so they are other draws. It clips each
    position's loss at 0 (it can be below only by rounding), and has a Laplace kernel.
    """

    name: ClassVar[str] = "smmd"
    version: ClassVar[int] = 1
    replaces_cross_entropy: ClassVar[bool] = False
    relative_scale: ClassVar[dict[int, float]] = {10: 1.25, 1000: 0.61}
    sigma: tuple[float, ...] = parameter(
        (2.0,), "bandwidths, in units of value", check=_bandwidths
    )
    weight: float = factor(3.0)
    alpha: float | None = parameter(
        None, "weight of the smoothness; none: 1 / (2 mean degree)", check=non_negative
    )
    term: Literal["both", "mmd", "smooth"] = parameter(
        "both", "which part of the loss to keep"
    )
    kernel: Literal["distance", "shuffled", "random"] = parameter(
        "distance", "what the kernel is made from: values, shuffled values, or nothing"
    )
    kernel_seed: int = parameter(
        0, "of a shuffled or random kernel", check=between(0, 2**32 - 1)
    )
    squash: float | None = parameter(
        None,
        "distance of the farthest value, that of the nearest being 1",
        check=more_than_one,
    )

    def __post_init__(self) -> None:
        if self.kernel == "random" and self.term != "mmd":
            raise ValueError("a random kernel has no graph Laplacian: add term=mmd.")
        if self.kernel == "random" and (
            self.sigma != (2.0,) or self.squash is not None
        ):
            raise ValueError(
                "a random kernel knows no distances: leave out sigma and squash."
            )

        if self.kernel == "distance" and self.kernel_seed:
            raise ValueError(
                "kernel_seed is for kernel=shuffled and kernel=random: leave it out."
            )
        if self.term == "mmd" and self.alpha is not None:
            raise ValueError(
                "alpha weights the smoothness, and term=mmd has none: leave one out."
            )

    def bind(self, vocabulary: NumericVocabulary) -> _ResidualForm:
        """The quadratic form in the residual as a module."""
        return _ResidualForm(self, vocabulary)

    def matrix(self, vocabulary: NumericVocabulary) -> Tensor:
        """K + alpha L, or the part of it that `term` keeps: [N, N] float64, symmetric."""
        K = self.gram(vocabulary)  # [N, N]
        if self.term == "mmd":
            return K
        degree = K.sum(1)  # [N]
        alpha = 1 / (2 * float(degree.mean())) if self.alpha is None else self.alpha
        smoothness = alpha * (degree.diag() - K)  # [N, N], alpha L
        return smoothness if self.term == "smooth" else K + smoothness

    def gram(self, vocabulary: NumericVocabulary) -> Tensor:
        """K: [N, N] float64, symmetric, ones on the diagonal; without squash no eigenvalue < 0."""
        # NumPy has frozen its streams for good, so a seed means the same kernel in any version.
        random = np.random.RandomState(self.kernel_seed)
        v = vocabulary.values  # [N]
        if self.kernel == "random":
            signs = random.choice([-0.5, 0.5], size=(len(v), 4))
            z = torch.from_numpy(signs)  # [N, 4], rows of norm 1
            # An elementwise power of a Gram matrix is one, too (Schur), with ones on its diagonal.
            return (z @ z.T) ** 5

        if self.kernel == "shuffled":
            order = torch.from_numpy(random.permutation(len(v)))  # [N]
            v = v[order]
        distance = (v[:, None] - v).abs()  # [N, N]
        distance = squash_distances(distance, vocabulary.values, self.squash)

        sigma = torch.tensor(self.sigma, dtype=v.dtype)  # [S]
        width = 2 * sigma[:, None, None] ** 2  # [S, 1, 1]
        kernels = torch.exp(-(distance**2) / width)  # [S, N, N]
        return kernels.mean(0)


class _ResidualForm(NumericLoss):
    separable = True

    def __init__(self, loss: SmoothMMD, vocabulary: NumericVocabulary) -> None:
        super().__init__(loss, vocabulary)
        self._matrices: dict[tuple[torch.dtype, torch.device], Tensor] = {}
        self.matrix(torch.empty(0))  # the usual one, in advance

    def matrix(self, like: Tensor) -> Tensor:
        """A: [N, N] in the dtype and on the device of `like`; made once for each, since large.

        Entries below 1e-19 (float32; 1e-154 in float64) become zeros: their products with small
        probabilities are subnormal, with which a CPU multiplies many times slower.
        """
        key = like.dtype, like.device
        if key not in self._matrices:
            matrix = self.loss.matrix(self.vocabulary).to(like)
            smallest = torch.finfo(like.dtype).tiny ** 0.5
            self._matrices[key] = matrix.masked_fill_(matrix.abs() < smallest, 0)
        return self._matrices[key]

    def forward(self, numeric: NumericTargets) -> tuple[Tensor, int]:
        r = numeric.residual()  # [M, N]
        # A r is computed once, for the value r^T A r and for its gradient 2 A r.
        product = r.detach() @ self.matrix(r)  # [M, N]
        total = 2 * (r * product).sum() - (r.detach() * product).sum()
        return total, numeric.target.numel()
