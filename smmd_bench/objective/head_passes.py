"""The passes over the output head: cross-entropies and gradients from a few logits at a time.

Shapes: T supervised tokens, H features, V tokens in the vocabulary, C rows and B columns at a time.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from .numeric_term import NumericShare

_SLICE = 16384  # columns that are copied to 16 bits at a time


@dataclass(frozen=True, slots=True, eq=False)
class HeadInputs:
    """What a pass reads: hidden [T, H], weight [V, H], label [T] int64, coefficient [T].

    hidden and weight are in the dtype of the matrix products, 16 bits perhaps; everything else is
    in the wide dtype, that of the coefficient. share: of the auxiliary, not evaluated yet.
    smoothing: of the labels. elements: how many logits are made at a time.
    """

    hidden: Tensor
    weight: Tensor
    label: Tensor
    coefficient: Tensor
    share: NumericShare | None
    smoothing: float
    elements: int

    def total(self, losses: Tensor, log_partition: Tensor) -> Tensor:
        """sum_t c_t l_t + F; smoothing adds s sum_t c_t (x_t,y - mean_v x_t,v)."""
        total = self.coefficient @ losses
        if self.share:
            total = total + self.share.value
        if self.smoothing:
            mean = self.weight.mean(0, dtype=self.coefficient.dtype)  # [H]
            logits = log_partition - losses - self.hidden.to(mean.dtype) @ mean  # [T]
            total += self.smoothing * (self.coefficient @ logits)
        return total


def frozen_head_pass(
    inputs: HeadInputs, *, differentiate: bool
) -> tuple[Tensor, Tensor, Tensor | None]:
    """(total [], cross-entropies [T], gradient of hidden [T, H] or None)."""
    hidden, weight, coefficient = inputs.hidden, inputs.weight, inputs.coefficient
    losses, log_partition = coefficient.new_empty(2, len(hidden))  # [T], [T]
    # W^T p: [T, H]
    expected = coefficient.new_zeros(hidden.shape) if differentiate else None

    # As many rows as columns: each reading of the weight serves many rows, in square products.
    height = max(1, min(len(hidden), math.isqrt(inputs.elements)))
    buffer = coefficient.new_empty(max(height, inputs.elements))
    for rows in _slices(len(hidden), height):
        out = None if expected is None else expected[rows]
        losses[rows], log_partition[rows] = _online_softmax(
            hidden[rows], weight, inputs.label[rows], out, buffer
        )

    # Its memory is needed for the gradients of the share.
    del buffer
    if inputs.share:
        inputs.share.evaluate(slice(None), log_partition, differentiate=differentiate)
    if expected is not None:
        _finish_hidden_gradient(expected, inputs)
    return inputs.total(losses, log_partition), losses, expected


def _online_softmax(
    hidden: Tensor,
    weight: Tensor,
    label: Tensor,
    expected: Tensor | None,
    buffer: Tensor,
) -> tuple[Tensor, Tensor]:
    """(cross-entropies [C], log Z [C]) of hidden [C, H]; adds W^T p to expected [C, H], a zero.

    Goes through the columns: log Z and W^T p are kept up to a factor that is corrected whenever a
    row's highest logit rises, as in FlashAttention. So the weight is read once for all rows, in
    matrix products that stay large however few logits the buffer holds.
    """
    label_logit = norm = buffer.new_zeros(len(hidden), 1)  # [C, 1]
    highest = torch.full_like(norm, -torch.inf)  # [C, 1]
    for columns in _slices(len(weight), buffer.numel() // len(hidden)):
        logits = _logits(hidden, weight[columns], buffer)  # [C, B]
        at = label[:, None] - columns.start  # [C, 1]
        last = logits.shape[1] - 1
        is_here = (at >= 0) & (at <= last)
        label_logit = logits.gather(1, at.clamp(0, last)).where(is_here, label_logit)

        # What was summed so far is relative to the highest logit of the columns before.
        new_highest = torch.maximum(highest, logits.amax(1, keepdim=True))
        correction = (highest - new_highest).exp()  # [C, 1]
        highest = new_highest
        scores = logits.sub_(highest).exp_()  # [C, B], in place of the logits
        norm = norm * correction + scores.sum(1, keepdim=True)
        if expected is not None:
            _add_product(expected.mul_(correction), scores, weight[columns])
    if expected is not None:
        expected /= norm

    log_partition = highest + norm.log()  # [C, 1]
    return (log_partition - label_logit).squeeze(1), log_partition.squeeze(1)


def trainable_head_pass(
    inputs: HeadInputs, *, for_hidden: bool
) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
    """(total [], cross-entropies [T], gradient of hidden [T, H] or None, of weight [V, H]).

    Goes through the rows, all columns at once, since the weight's gradient needs the probabilities
    themselves; it is updated once a chunk.
    """
    hidden, weight, coefficient = inputs.hidden, inputs.weight, inputs.coefficient
    label, smoothing, share = inputs.label, inputs.smoothing, inputs.share
    losses, log_partition = coefficient.new_empty(2, len(hidden))  # [T], [T]
    # W^T p: [T, H]
    expected = coefficient.new_zeros(hidden.shape) if for_hidden else None
    gradient = coefficient.new_zeros(weight.shape)  # [V, H]
    height = max(1, min(len(hidden), inputs.elements // len(weight)))
    buffer = coefficient.new_empty(height * len(weight))

    parts = share.parts(len(hidden), height) if share and share.term.separable else []
    for index, rows in enumerate(_slices(len(hidden), height)):
        logits = _logits(hidden[rows], weight, buffer)  # [C, V]
        label_logit = logits.gather(1, label[rows, None])  # [C, 1]
        highest = logits.amax(1, keepdim=True)  # [C, 1]
        scores = logits.sub_(highest).exp_()  # [C, V], in place of the logits
        norm = scores.sum(1, keepdim=True)  # [C, 1], p = scores / norm
        log_partition[rows] = (highest + norm.log()).squeeze(1)
        losses[rows] = log_partition[rows] - label_logit.squeeze(1)

        # A chunk's part of dF/dlog Z must be known before the chunk's gradient is added.
        if share and parts:
            share.evaluate(parts[index], log_partition, differentiate=True)
        if expected is not None:
            _add_product(expected[rows], scores, weight)
            expected[rows] /= norm
        softmax_coefficient = _softmax_coefficient(coefficient, share)  # [T]
        factor = softmax_coefficient[rows, None] / norm  # [C, 1]
        _add_outer(gradient, scores, hidden[rows], factor)

    # Any other F needs the partition functions of all rows, which are known only now.
    if share and not parts:
        share.evaluate(slice(None), log_partition, differentiate=True)
        if share.uses_partition:
            _add_partition_gradient(gradient, inputs, log_partition, share, buffer)

    # The labels' part, then that of the numeric tokens.
    gradient.index_add_(0, label, (smoothing - 1) * coefficient[:, None] * hidden)
    if smoothing:
        gradient -= (
            smoothing / len(weight) * (coefficient @ hidden.to(coefficient.dtype))
        )
    if share:
        numeric_hidden = hidden[share.term.rows].to(gradient.dtype)  # [M, H]
        gradient.index_add_(0, share.term.token_ids, share.logits.T @ numeric_hidden)
    if expected is not None:
        _finish_hidden_gradient(expected, inputs)
    return inputs.total(losses, log_partition), losses, expected, gradient


def _add_partition_gradient(
    gradient: Tensor,
    inputs: HeadInputs,
    log_partition: Tensor,
    share: NumericShare,
    buffer: Tensor,
) -> None:
    """gradient [V, H] += sum_m dF/dlog Z_m p_m h_m^T, by a second pass over the numeric rows."""
    height = buffer.numel() // len(inputs.weight)
    for chunk in _slices(len(share.term.rows), height):
        rows = share.term.rows[chunk]  # [C]
        hidden = inputs.hidden[rows]  # [C, H]
        logits = _logits(hidden, inputs.weight, buffer)  # [C, V]
        probabilities = logits.sub_(log_partition[rows, None]).exp_()
        _add_outer(
            gradient, probabilities, hidden, share.partition_gradient[chunk, None]
        )


def _finish_hidden_gradient(expected: Tensor, inputs: HeadInputs) -> None:
    """W^T p [T, H] -> a W^T p - c ((1 - s) W_y + s mean_v W_v) + G W[V_num], in place."""
    weight, smoothing, share = inputs.weight, inputs.smoothing, inputs.share
    coefficient = inputs.coefficient[:, None]  # [T, 1]
    softmax_coefficient = _softmax_coefficient(inputs.coefficient, share)  # [T]
    expected *= softmax_coefficient[:, None]
    label_weight = weight[inputs.label].to(expected.dtype)  # [T, H]
    expected.addcmul_(coefficient, label_weight, value=smoothing - 1)
    if smoothing:
        mean = weight.mean(0, dtype=expected.dtype)  # [H]
        expected.addcmul_(coefficient, mean, value=-smoothing)
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
    # A product cannot be written into a buffer of another dtype.
    if logits.dtype == hidden.dtype:
        return torch.mm(hidden, weight.T, out=logits)
    return logits.copy_(hidden @ weight.T)


def _add_product(total: Tensor, scores: Tensor, weight: Tensor) -> None:
    """total [C, H] += scores [C, B] @ weight [B, H]; 16-bit products are summed in `total`."""
    if scores.dtype == weight.dtype:
        total.addmm_(scores, weight)
        return
    for columns, slice_of_weight in zip(
        scores.split(_SLICE, 1), weight.split(_SLICE), strict=True
    ):
        total += columns.to(weight.dtype) @ slice_of_weight


def _add_outer(
    gradient: Tensor, scores: Tensor, hidden: Tensor, factor: Tensor
) -> None:
    """gradient [V, H] += scores^T (factor * hidden): scores [C, V], hidden [C, H], factor [C, 1].

    In bf16 the products are rounded once a chunk and summed in float32. fp16 has too little range
    for that and multiplies in float32.
    """
    scaled = hidden.to(factor.dtype) * factor  # [C, H]
    if hidden.dtype != torch.bfloat16:
        gradient.addmm_(scores.T, scaled)
        return
    scaled = scaled.to(hidden.dtype)
    for rows, columns in zip(
        gradient.split(_SLICE), scores.split(_SLICE, 1), strict=True
    ):
        rows += columns.to(hidden.dtype).T @ scaled


def _slices(length: int, step: int) -> Iterator[slice]:
    """0..length in steps."""
    for start in range(0, length, step):
        yield slice(start, min(start + step, length))
