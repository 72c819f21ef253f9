"""Cross-entropy over the full vocabulary that never holds the logits of all tokens.

One autograd Function makes a few logits at a time and, in the same pass, the gradients of the
hidden states and of a weight that needs one. With x_t = W h_t, Z_t = sum_v exp x_tv,
p_t = softmax(x_t) and a coefficient c_t per token, the total is

    sum_t c_t (log Z_t - x_{t,y_t})  +  F(x[numeric rows, V_num], log Z[numeric rows])

where F is the share of an auxiliary loss. Let a_t = c_t + dF/dlog Z_t, and G = dF/dx [M, N]. Then

    d total / dh_t = a_t W^T p_t - c_t W_{y_t} + (G W[V_num])_t
    d total / dW   = sum_t a_t p_t h_t^T, less c_t h_t in row y_t, plus G^T h in the rows V_num

so the auxiliary needs neither a second [T, V] nor a second [V, H] tensor.

Why not torch's own `linear_cross_entropy`: it gives neither log Z nor the numeric logits, and in
chunks it takes 13 times as long (27.6 s against 2.2 s; plain logits 2.8 s; H=896, V=151,936, 512
tokens, float32, frozen head, one CPU thread, n=3: benchmarks/README.md has the command).
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .head_passes import HeadInputs, frozen_head_pass, trainable_head_pass
from .numeric_term import NumericShare, NumericTerm


def chunked_cross_entropy(
    hidden: Tensor,
    weight: Tensor,
    label: Tensor,
    coefficient: Tensor,
    term: NumericTerm | None = None,
    smoothing: float = 0.0,
    chunk_elements: int | None = None,
) -> tuple[Tensor, Tensor]:
    """(total [] with gradients for hidden and weight, cross-entropies [T] without).

    hidden: [T, H]. weight: [V, H]. label: [T] int64. coefficient: [T]. smoothing: of the labels, in
    the total; the cross-entropies are without it.
    Results are in float32, or in float64 where the weight is. 16-bit weights, and autocast, make
    16-bit matrix products, as a linear layer would; their sums are in float32.
    """
    device = hidden.device.type
    autocast = torch.is_autocast_enabled(device)
    compute = torch.get_autocast_dtype(device) if autocast else weight.dtype
    coefficient = coefficient.to(torch.promote_types(compute, torch.float32))
    plain = hidden.detach().to(compute), weight.detach().to(compute)

    elements = chunk_elements or _default_chunk_elements(weight)
    with torch.autocast(device, enabled=False):
        share = None if term is None else NumericShare(term, *plain, coefficient)
        inputs = HeadInputs(*plain, label, coefficient, share, smoothing, elements)
        # Inside of a Function gradients are always off: whether they are on is asked out here.
        total, losses = _ChunkedCrossEntropy.apply(
            hidden, weight, inputs, torch.is_grad_enabled()
        )
    return total, losses


def _default_chunk_elements(weight: Tensor) -> int:
    """How many logits to hold at once (measured: benchmarks/README.md).

    A trainable head's gradient [V, H] is updated once a chunk, so its chunks are longer. A GPU has
    memory to spare, and wants large kernels.
    """
    if weight.device.type == "cpu":
        return 2**25 if weight.requires_grad else 2**21
    return 2**27 if weight.requires_grad else 2**25


class _ChunkedCrossEntropy(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        inputs: HeadInputs,
        differentiate: bool,
    ) -> tuple[Tensor, Tensor]:
        for_hidden, for_weight = (
            differentiate and need for need in ctx.needs_input_grad[:2]
        )
        ctx.dtypes = hidden.dtype, weight.dtype

        weight_gradient = None
        if for_weight:
            total, losses, hidden_gradient, weight_gradient = trainable_head_pass(
                inputs, for_hidden=for_hidden
            )
        else:
            total, losses, hidden_gradient = frozen_head_pass(
                inputs, differentiate=for_hidden
            )
        # Gradients are made with the logits in hand; the backward pass only scales them.
        ctx.save_for_backward(hidden_gradient, weight_gradient)
        ctx.mark_non_differentiable(losses)
        return total, losses

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, scale: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        of_hidden, of_weight = ctx.saved_tensors
        hidden_dtype, weight_dtype = ctx.dtypes
        if of_hidden is not None:
            of_hidden = (of_hidden * scale).to(hidden_dtype)
        if of_weight is not None:
            # a copy as large as W, only where it must be: a GPU is waited for here
            if scale != 1:
                of_weight = of_weight * scale
            of_weight = of_weight.to(weight_dtype)
        return of_hidden, of_weight, None, None
