"""The auxiliary's share of the total, evaluated and differentiated inside the fused Function."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

# numeric logits of a separable loss to evaluate at once
_ON_CPU = 2**17
_ON_GPU = 2**24


@dataclass(frozen=True, slots=True)
class NumericTerm:
    """F(x[rows, V_num], log Z[rows]), a scalar that is added to the total.

    rows: [M] int64, ascending, which of the supervised tokens; on_cpu: the same, on the CPU.
    token_ids: [N] int64.
    value: (logits [m, N], log_partition [m], part of 0..M) -> F over that part, differentiable.
    separable: F is the sum of `value` over any parts of the rows.
    """

    rows: Tensor
    on_cpu: NDArray[np.int64]
    token_ids: Tensor
    value: Callable[[Tensor, Tensor, slice], Tensor]
    separable: bool


class NumericShare:
    """F on one batch, evaluated as the partition functions of its rows become known.

    weight: [N, H], the rows V_num of the head. logits: [M, N]; once evaluated, dF/dx in its place.
    partition_gradient: [M], dF/dlog Z once evaluated. uses_partition: whether F depends on it.
    value: F over what was evaluated. All in the wide dtype.
    """

    def __init__(
        self, term: NumericTerm, hidden: Tensor, weight: Tensor, like: Tensor
    ) -> None:
        """The logits are those of hidden [T, H] and weight [V, H]; `like` has the wide dtype."""
        self.term = term
        numeric_weight = weight[term.token_ids]
        self.logits = (hidden[term.rows] @ numeric_weight.T).to(like.dtype)
        self.weight = numeric_weight.to(like.dtype)
        self.partition_gradient = like.new_zeros(len(term.rows))
        self.uses_partition = False
        self.value = like.new_zeros(())

    def parts(self, tokens: int, chunk_rows: int) -> list[slice]:
        """For each chunk of the T supervised tokens, its numeric rows as a slice of 0..M."""
        # On the CPU, since slices need the bounds there and a GPU would be waited for.
        starts = np.arange(0, tokens + chunk_rows, chunk_rows)
        bounds = np.searchsorted(self.term.on_cpu, starts).tolist()
        return [slice(low, high) for low, high in pairwise(bounds)]

    def evaluate(
        self, part: slice, log_partition: Tensor, *, differentiate: bool
    ) -> None:
        """Add F over a part, given log Z of all tokens [T], and put its gradients in place. A
        separable F is evaluated a few rows at a time, for the memory of its graph."""
        start, stop, _ = part.indices(len(self.logits))
        # Any other F stays whole: a number of several tokens must not be cut.
        step = max(1, stop - start)
        if self.term.separable:
            at_once = _ON_CPU if self.logits.device.type == "cpu" else _ON_GPU
            step = max(1, at_once // self.logits.shape[1])

        for low in range(start, stop, step):
            rows = slice(low, min(low + step, stop))
            leaves = self.logits[rows], log_partition[self.term.rows[rows]]
            if differentiate:
                self._differentiate(*leaves, rows)
            else:
                self.value += self.term.value(*leaves, rows)

    def _differentiate(
        self, logits: Tensor, log_partition: Tensor, part: slice
    ) -> None:
        """One evaluation with gradients, without saved-tensor hooks of an enclosing region."""
        with (
            torch.enable_grad(),
            torch.autograd.graph.saved_tensors_hooks(_same, _same),
        ):
            leaves = logits.clone().requires_grad_(), log_partition.requires_grad_()
            value = self.term.value(*leaves, part)
            gradients: tuple[Tensor | None, ...] = (None, None)
            if value.requires_grad:
                gradients = torch.autograd.grad(value, leaves, allow_unused=True)

        self.value += value.detach()
        self.logits[part] = 0 if gradients[0] is None else gradients[0]
        if gradients[1] is not None:
            self.uses_partition = True
            self.partition_gradient[part] = gradients[1]


def _same(tensor: Tensor) -> Tensor:
    return tensor
