"""Cross-entropy over the full vocabulary without the logits of all tokens at once.

One autograd Function makes the logits a chunk of rows at a time and, in the same pass, the
gradients of the hidden states and of a weight that wants one. With x_t = W h_t, Z_t = sum_v
exp x_tv, p_t = softmax(x_t) and per-token coefficients c_t, the total is

    sum_t c_t (log Z_t - x_{t,y_t})  +  F(x[numeric rows, V_num], log Z[numeric rows])

where F is the share of an auxiliary loss. Let a_t = c_t + dF/dlog Z_t, and G = dF/dx [M, N]. Then

    d total / dh_t = a_t W^T p_t - c_t W_{y_t} + (G W[V_num])_t
    d total / dW   = sum_t a_t p_t h_t^T, with - c_t h_t added to row y_t and G^T h to rows V_num

so the auxiliary needs neither a second [T, V] nor a second [V, H] tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

_BF16_SLICE = 16384
_HALF_SCALE = 256.0


@dataclass(frozen=True, slots=True)
class NumericTerm:
    """F: the auxiliary's share of the total.

    rows: [M] int64, ascending, rows of the hidden states. token_ids: [N] int64.
    value: (logits [m, N], log_partition [m], rows as a slice of 0..M) -> scalar, differentiable.
    separable: value may be called on one part of the rows after another.
    """

    rows: Tensor
    token_ids: Tensor
    value: Callable[[Tensor, Tensor, slice], Tensor]
    separable: bool


def chunked_cross_entropy(
    hidden: Tensor,
    weight: Tensor,
    label: Tensor,
    coefficient: Tensor,
    term: NumericTerm | None = None,
    chunk_rows: int | None = None,
) -> tuple[Tensor, Tensor]:
    """(total [] with gradients for hidden and weight, cross-entropies [T] without).

    hidden: [T, H]. weight: [V, H]. label: [T] int64. coefficient: [T].
    Results are in float32, or in float64 where the inputs are; 16-bit inputs (and autocast) make
    16-bit matrix products, as a linear layer would, and sum them in float32.
    """
    device = hidden.device.type
    compute = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else weight.dtype
    rows = chunk_rows or default_chunk_rows(weight)
    with torch.autocast(device, enabled=False):
        total, losses = _ChunkedCrossEntropy.apply(
            hidden, weight, label, coefficient, term, rows, compute, torch.is_grad_enabled()
        )
    return total, losses


def default_chunk_rows(weight: Tensor) -> int:
    """Rows of logits to hold at once: few on a CPU, where memory is dear and kernels start fast.

    A weight gradient is updated once a chunk, so a trainable head wants longer chunks.
    """
    if weight.device.type == "cpu":
        elements = 2**25 if weight.requires_grad else 2**23
    else:
        elements = 2**27
    return max(1, elements // weight.shape[0])


class _ChunkedCrossEntropy(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        label: Tensor,
        coefficient: Tensor,
        term: NumericTerm | None,
        chunk_rows: int,
        compute: torch.dtype,
        differentiate: bool,
    ) -> tuple[Tensor, Tensor]:
        total, losses, *gradients = _one_pass(
            hidden.detach().to(compute),
            weight.detach().to(compute),
            label,
            coefficient.to(torch.promote_types(compute, torch.float32)),
            term,
            chunk_rows,
            for_hidden=differentiate and ctx.needs_input_grad[0],
            for_weight=differentiate and ctx.needs_input_grad[1],
        )
        ctx.dtypes = hidden.dtype, weight.dtype
        ctx.save_for_backward(*gradients)
        ctx.mark_non_differentiable(losses)
        return total, losses

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, scale: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        gradients = []
        for gradient, dtype in zip(ctx.saved_tensors, ctx.dtypes, strict=True):
            if gradient is not None and scale != 1:  # a copy as large as W: only where it must be
                gradient = gradient * scale
            gradients.append(None if gradient is None else gradient.to(dtype))
        return *gradients, None, None, None, None, None, None


def _one_pass(
    hidden: Tensor,
    weight: Tensor,
    label: Tensor,
    coefficient: Tensor,
    term: NumericTerm | None,
    chunk_rows: int,
    *,
    for_hidden: bool,
    for_weight: bool,
) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
    """(total, cross-entropies [T], gradient of hidden [T, H], gradient of weight [V, H]).

    hidden [T, H] and weight [V, H] are in the dtype of the matrix products; the rest, the results
    included, is in that of coefficient [T].
    """
    tokens, vocabulary = hidden.shape[0], weight.shape[0]
    log_partition = coefficient.new_empty(tokens)  # [T]
    losses = coefficient.new_empty(tokens)  # [T]
    expected = coefficient.new_empty(hidden.shape) if for_hidden else None  # W^T p_t: [T, H]
    weight_gradient = coefficient.new_zeros(weight.shape) if for_weight else None  # [V, H]
    buffer = coefficient.new_empty(min(chunk_rows, tokens), vocabulary)  # [C, V]
    numeric = _Auxiliary(term, hidden, coefficient, chunk_rows) if term else None
    early = numeric is not None and numeric.term.separable and for_weight
    for number, start in enumerate(range(0, tokens, chunk_rows)):
        rows = slice(start, min(start + chunk_rows, tokens))
        logits = _logits(hidden[rows], weight, buffer)  # [C, V]
        label_logit = logits.gather(1, label[rows, None]).squeeze(1)  # [C]
        if numeric:
            numeric.take(number, logits, start)
        highest = logits.amax(1, keepdim=True)
        scores = logits.sub_(highest).exp_()  # [C, V], Z p / exp(highest)
        norm = scores.sum(1, keepdim=True)  # [C, 1]
        log_partition[rows] = (highest + norm.log()).squeeze(1)
        losses[rows] = log_partition[rows] - label_logit
        if numeric and early:
            numeric.evaluate(numeric.parts[number], log_partition, for_gradient=True)
        if expected is not None:
            expected[rows] = _times_weight(scores, norm, weight)
        if weight_gradient is not None:
            a = coefficient[rows] if numeric is None else numeric.softmax_coefficient[rows]  # [C]
            _add_outer(weight_gradient, scores, hidden[rows].to(a.dtype) * (a[:, None] / norm), hidden.dtype)
    raise NotImplementedError
