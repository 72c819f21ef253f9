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

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .numeric_term import NumericShare, NumericTerm

_SLICE = 16384
_SCALE = 256.0


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
    autocast = torch.is_autocast_enabled(device)
    compute = torch.get_autocast_dtype(device) if autocast else weight.dtype
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
    return max(1, elements // int(weight.shape[0]))


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
    softmax_coefficient = coefficient.clone()  # a: [T]
    expected = coefficient.new_empty(hidden.shape) if for_hidden else None  # W^T p_t: [T, H]
    weight_gradient = coefficient.new_zeros(weight.shape) if for_weight else None  # [V, H]
    buffer = coefficient.new_empty(min(chunk_rows, tokens), vocabulary)  # [C, V]
    share = NumericShare(term, tokens, chunk_rows, like=coefficient) if term else None
    by_chunk = for_weight and term is not None and term.separable

    for index, start in enumerate(range(0, tokens, chunk_rows)):
        rows = slice(start, min(start + chunk_rows, tokens))
        logits = _logits(hidden[rows], weight, buffer)  # [C, V]
        label_logit = logits.gather(1, label[rows, None])  # [C, 1]
        if share:
            share.gather(share.parts[index], logits, start)
        highest = logits.amax(1, keepdim=True)  # [C, 1]
        scores = logits.sub_(highest).exp_()  # [C, V], in place of the logits
        norm = scores.sum(1, keepdim=True)  # [C, 1], p = scores / norm
        log_partition[rows] = (highest + norm.log()).squeeze(1)
        losses[rows] = log_partition[rows] - label_logit.squeeze(1)
        if share and by_chunk:
            part = share.parts[index]
            share.evaluate(part, log_partition, differentiate=True)
            softmax_coefficient[share.term.rows[part]] += share.partition_gradient[part]
        if hidden.dtype in (torch.bfloat16, torch.float16):
            scores.mul_(_SCALE / norm)  # probabilities, kept from underflow in fp16
            norm = torch.full_like(norm, _SCALE)
        if expected is not None:
            expected[rows] = (scores.to(hidden.dtype) @ weight).to(norm.dtype) / norm
        if weight_gradient is not None:
            factor = softmax_coefficient[rows, None] / norm  # [C, 1]
            _add_outer(weight_gradient, scores, hidden[rows], factor)

    if share and not by_chunk:
        share.evaluate(slice(0, tokens), log_partition, differentiate=for_hidden or for_weight)
        softmax_coefficient[share.term.rows] += share.partition_gradient
        if weight_gradient is not None and share.uses_partition:
            _add_partition_gradient(weight_gradient, hidden, weight, log_partition, share, buffer)
    if expected is not None:
        expected *= softmax_coefficient[:, None]
        expected -= coefficient[:, None] * weight[label]
    if weight_gradient is not None:
        weight_gradient.index_add_(0, label, -coefficient[:, None] * hidden)
    if share:
        ids, at = share.term.token_ids, share.term.rows
        if expected is not None:
            expected.index_add_(0, at, share.logits @ weight[ids].to(expected.dtype))
        if weight_gradient is not None:
            by_token = share.logits.T @ hidden[at].to(weight_gradient.dtype)  # [N, H]
            weight_gradient.index_add_(0, ids, by_token)
    total = coefficient @ losses + (share.value if share else 0)
    return total, losses, expected, weight_gradient


def _logits(hidden: Tensor, weight: Tensor, buffer: Tensor) -> Tensor:
    """hidden [C, H] -> [C, V] in the buffer [>=C, V] and its dtype."""
    logits = buffer[: hidden.shape[0]]
    if logits.dtype == hidden.dtype:
        return torch.mm(hidden, weight.T, out=logits)
    return logits.copy_(hidden @ weight.T)


def _add_outer(weight_gradient: Tensor, scores: Tensor, hidden: Tensor, factor: Tensor) -> None:
    """weight_gradient [V, H] += scores^T (factor * hidden): scores [C, V], hidden [C, H].

    In bf16 the products are rounded once a chunk, slice by slice, and summed in float32. fp16 has
    too little range for that and multiplies in float32.
    """
    scaled = hidden.to(factor.dtype) * factor  # [C, H]
    if hidden.dtype != torch.bfloat16:
        weight_gradient.addmm_(scores.T, scaled)
        return
    scaled = scaled.to(hidden.dtype)
    slices = zip(weight_gradient.split(_SLICE), scores.split(_SLICE, 1), strict=True)
    for gradient, columns in slices:
        gradient += columns.to(hidden.dtype).T @ scaled


def _add_partition_gradient(
    weight_gradient: Tensor,
    hidden: Tensor,
    weight: Tensor,
    log_partition: Tensor,
    share: NumericShare,
    buffer: Tensor,
) -> None:
    """weight_gradient += sum_m dF/dlog Z_m p_m h_m^T, by a second pass over the numeric rows."""
    rows_and_gradients = zip(
        share.term.rows.split(buffer.shape[0]),
        share.partition_gradient.split(buffer.shape[0]),
        strict=True,
    )
    for rows, gradient in rows_and_gradients:
        logits = _logits(hidden[rows], weight, buffer)  # [C, V]
        probabilities = logits.sub_(log_partition[rows, None]).exp_()
        _add_outer(weight_gradient, probabilities, hidden[rows], gradient[:, None])
