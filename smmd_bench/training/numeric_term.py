"""The auxiliary's share of the total, gathered and differentiated within the chunked pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class NumericTerm:
    """F(x[rows, V_num], log Z[rows]), a scalar that is added to the total.

    rows: [M] int64, ascending, indices of supervised tokens. token_ids: [N] int64.
    value: (logits [m, N], log_partition [m], part of 0..M) -> F over that part, differentiable.
    separable: F is the sum of `value` over any parts of the rows.
    """

    rows: Tensor
    token_ids: Tensor
    value: Callable[[Tensor, Tensor, slice], Tensor]
    separable: bool


class NumericShare:
    """F during one pass over the rows in chunks.

    logits: [M, N], what was gathered; after `differentiate`, dF/dx in its place.
    partition_gradient: [M], dF/dlog Z; zero until `differentiate`. uses_partition: if it is not
    zero for good. value: F over the parts so far. parts: the rows of each chunk, as slices of 0..M.
    """

    def __init__(self, term: NumericTerm, tokens: int, chunk_rows: int, like: Tensor) -> None:
        self.term = term
        self.logits = like.new_empty(term.rows.numel(), term.token_ids.numel())
        self.partition_gradient = like.new_zeros(term.rows.numel())
        self.uses_partition = False
        self.value = like.new_zeros(())
        starts = torch.arange(0, tokens + chunk_rows, chunk_rows, device=term.rows.device)
        bounds = torch.searchsorted(term.rows, starts).tolist()
        self.parts = [slice(low, high) for low, high in pairwise(bounds)]

    def gather(self, part: slice, logits: Tensor, start: int) -> None:
        """Keep the numeric logits of a chunk [C, V] whose first row is `start`."""
        rows = self.term.rows[part] - start  # [m]
        self.logits[part] = logits[rows[:, None], self.term.token_ids]

    def evaluate(self, part: slice, log_partition: Tensor, *, differentiate: bool) -> None:
        """Add F over a part, given log Z of all tokens [T], and put its gradients in place.

        The graph is that of F alone, from detached leaves; saved-tensor hooks of an enclosing
        region, such as gradient checkpointing, have no business in it.
        """
        leaves = self.logits[part], log_partition[self.term.rows[part]]
        if not leaves[1].numel():
            return
        if not differentiate:
            self.value += self.term.value(*leaves, part)
            return
        plain_graph = torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x)
        with torch.enable_grad(), plain_graph:
            logits, partition = (leaf.clone().requires_grad_() for leaf in leaves)
            value = self.term.value(logits, partition, part)
            by_logits, by_partition = torch.autograd.grad(
                value, (logits, partition), allow_unused=True
            ) if value.requires_grad else (None, None)
        self.value += value.detach()
        self.logits[part] = 0 if by_logits is None else by_logits
        if by_partition is not None:
            self.uses_partition = True
            self.partition_gradient[part] = by_partition
