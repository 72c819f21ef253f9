"""The passes over the output head: cross-entropies and gradients from a few logits at a time.

Shapes: T supervised tokens, H features, V tokens in the vocabulary, C rows and B columns at a time.
hidden [T, H] and weight [V, H] are in the dtype of the matrix products, 16 bits perhaps; everything
else is in the wide dtype, that of coefficient [T].
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from .numeric_term import NumericShare

_SLICE = 16384


def frozen_head_pass(
    hidden: Tensor,
    weight: Tensor,
    label: Tensor,
    coefficient: Tensor,
    share: NumericShare | None,
    elements: int,
    *,
    differentiate: bool,
) -> tuple[Tensor, Tensor | None]:
    """(cross-entropies [T], gradient of hidden [T, H] or None), with `elements` logits at a time.

    Goes through the columns of all rows with an online softmax: log Z and W^T p are kept up to a
    factor that is corrected whenever a row's highest logit rises (as in FlashAttention). The weight
    is read once, in large matrix products.
    """
    tokens = hidden.shape[0]
    losses, log_partition = coefficient.new_empty(2, tokens)  # [T], [T]
    expected = coefficient.new_zeros(hidden.shape) if differentiate else None  # W^T p: [T, H]
    height = max(1, min(tokens, math.isqrt(elements)))
    width = max(1, min(weight.shape[0], elements // height))
    buffer = coefficient.new_empty(height * width)
    for rows in _slices(tokens, height):
        label_logit = norm = coefficient.new_zeros(rows.stop - rows.start, 1)  # [C, 1]
        highest = torch.full_like(norm, -torch.inf)  # [C, 1]
        for columns in _slices(weight.shape[0], width):
            logits = _logits(hidden[rows], weight[columns], buffer)  # [C, B]
            at = label[rows, None] - columns.start  # [C, 1]
            here = logits.gather(1, at.clamp(0, logits.shape[1] - 1))
            label_logit = here.where((at >= 0) & (at < logits.shape[1]), label_logit)
            before, highest = highest, torch.maximum(highest, logits.amax(1, keepdim=True))
            correction = (before - highest).exp()  # [C, 1]
            scores = logits.sub_(highest).exp_()  # [C, B], in place of the logits
            norm = norm * correction + scores.sum(1, keepdim=True)
            if expected is not None:
                _add_product(expected[rows].mul_(correction), scores, weight[columns])
        log_partition[rows] = (highest + norm.log()).squeeze(1)
        losses[rows] = log_partition[rows] - label_logit.squeeze(1)
        if expected is not None:
            expected[rows] /= norm
    if share:
        share.evaluate(slice(None), log_partition, differentiate=differentiate)
    if expected is not None:
        _finish_hidden_gradient(expected, weight, label, coefficient, share)
    return losses, expected


def trainable_head_pass(
    hidden: Tensor,
    weight: Tensor,
    label: Tensor,
    coefficient: Tensor,
    share: NumericShare | None,
    elements: int,
    *,
    for_hidden: bool,
) -> tuple[Tensor, Tensor | None, Tensor]:
    """(cross-entropies [T], gradient of hidden [T, H] or None, gradient of weight [V, H]).

    Goes through the rows, all columns at once, since the weight's gradient needs the probabilities
    themselves; it is updated once a chunk of `elements` logits.
    """
    tokens = hidden.shape[0]
    losses, log_partition = coefficient.new_empty(2, tokens)  # [T], [T]
    expected = coefficient.new_zeros(hidden.shape) if for_hidden else None  # W^T p: [T, H]
    gradient = coefficient.new_zeros(weight.shape)  # [V, H]
    height = max(1, min(tokens, elements // weight.shape[0]))
    buffer = coefficient.new_empty(height * weight.shape[0])
    parts = share.parts(tokens, height) if share and share.term.separable else []
    for index, rows in enumerate(_slices(tokens, height)):
        logits = _logits(hidden[rows], weight, buffer)  # [C, V]
        label_logit = logits.gather(1, label[rows, None])  # [C, 1]
        highest = logits.amax(1, keepdim=True)  # [C, 1]
        scores = logits.sub_(highest).exp_()  # [C, V], in place of the logits
        norm = scores.sum(1, keepdim=True)  # [C, 1], p = scores / norm
        log_partition[rows] = (highest + norm.log()).squeeze(1)
        losses[rows] = log_partition[rows] - label_logit.squeeze(1)
        if share and parts:
            share.evaluate(parts[index], log_partition, differentiate=True)
        if expected is not None:
            _add_product(expected[rows], scores, weight)
            expected[rows] /= norm
        factor = _softmax_coefficient(coefficient, share)[rows, None] / norm  # [C, 1]
        _add_outer(gradient, scores, hidden[rows], factor)
    if share and not parts:
        share.evaluate(slice(None), log_partition, differentiate=True)
        if share.uses_partition:
            _add_partition_gradient(gradient, hidden, weight, log_partition, share, buffer)
    gradient.index_add_(0, label, -coefficient[:, None] * hidden)
    if share:
        gradient.index_add_(0, share.term.token_ids, share.logits.T @ share.hidden)
    if expected is not None:
        _finish_hidden_gradient(expected, weight, label, coefficient, share)
    return losses, expected, gradient


def _add_partition_gradient(
    gradient: Tensor,
    hidden: Tensor,
    weight: Tensor,
    log_partition: Tensor,
    share: NumericShare,
    buffer: Tensor,
) -> None:
    """gradient [V, H] += sum_m dF/dlog Z_m p_m h_m^T, by a second pass over the numeric rows."""
    height = buffer.numel() // weight.shape[0]
    for part in _slices(len(share.hidden), height):
        rows = share.term.rows[part]  # [C]
        logits = _logits(hidden[rows], weight, buffer)  # [C, V]
        probabilities = logits.sub_(log_partition[rows, None]).exp_()
        _add_outer(gradient, probabilities, hidden[rows], share.partition_gradient[part, None])


def _finish_hidden_gradient(
    expected: Tensor,
    weight: Tensor,
    label: Tensor,
    coefficient: Tensor,
    share: NumericShare | None,
) -> None:
    """W^T p [T, H] -> a W^T p - c W_y + G W[V_num], in place."""
    expected *= _softmax_coefficient(coefficient, share)[:, None]
    expected -= coefficient[:, None] * weight[label]
    if share:
        expected.index_add_(0, share.term.rows, share.logits @ share.weight)


def _softmax_coefficient(coefficient: Tensor, share: NumericShare | None) -> Tensor:
    """a = c + dF/dlog Z, as far as F was evaluated: [T]."""
    if share is None or not share.uses_partition:
        return coefficient
    return coefficient.index_add(0, share.term.rows, share.partition_gradient)


def _logits(hidden: Tensor, weight: Tensor, buffer: Tensor) -> Tensor:
    """hidden [C, H], weight [B, H] -> [C, B] in the buffer and its dtype."""
    logits = buffer[: len(hidden) * len(weight)].view(len(hidden), len(weight))
    if logits.dtype == hidden.dtype:
        return torch.mm(hidden, weight.T, out=logits)
    return logits.copy_(hidden @ weight.T)


def _add_product(total: Tensor, scores: Tensor, weight: Tensor) -> None:
    """total [C, H] += scores [C, B] @ weight [B, H]; 16-bit products are summed in `total`."""
    if scores.dtype == weight.dtype:
        total.addmm_(scores, weight)
        return
    for columns, slice_of_weight in zip(scores.split(_SLICE, 1), weight.split(_SLICE), strict=True):
        total += columns.to(weight.dtype) @ slice_of_weight


def _add_outer(gradient: Tensor, scores: Tensor, hidden: Tensor, factor: Tensor) -> None:
    """gradient [V, H] += scores^T (factor * hidden): scores [C, V], hidden [C, H], factor [C, 1].

    In bf16 the products are rounded once a chunk and summed in float32. fp16 has too little range
    for that and multiplies in float32.
    """
    scaled = hidden.to(factor.dtype) * factor  # [C, H]
    if hidden.dtype != torch.bfloat16:
        gradient.addmm_(scores.T, scaled)
        return
    scaled = scaled.to(hidden.dtype)
    for rows, columns in zip(gradient.split(_SLICE), scores.split(_SLICE, 1), strict=True):
        rows += columns.to(hidden.dtype).T @ scaled


def _slices(length: int, step: int) -> Iterator[slice]:
    """0..length in steps."""
    for start in range(0, length, step):
        yield slice(start, min(start + step, length))
