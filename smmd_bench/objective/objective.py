"""The training objective: cross-entropy plus, or at numeric positions replaced by, an auxiliary.

With T supervised tokens and U units of the auxiliary in the whole optimiser step (all micro-batches
and processes), and l_t the full-vocabulary cross-entropy of a token (eq:loss of the paper):

    additive loss    total = sum_t l_t / T  +  lambda * sum_u aux_u / U
    replacing loss   total = (sum_{t not numeric} l_t  +  sum_u aux_u) / T

With label smoothing epsilon (CE alone has it), log Z - x_t,y becomes log Z - (1 - epsilon) x_t,y -
epsilon mean_v x_t,v.

The totals of micro-batches that share T and U add up to the total of the whole step. The reported
`cross_entropy` is always the full one, so that losses can be compared by it.
"""

import functools
import logging
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from ..contracts import NumericLoss
from .chunked_cross_entropy import chunked_cross_entropy
from .numeric_term import NumericTerm
from .output_head import OutputHead
from .supervised import SupervisedTargets, supervised_targets

Count: TypeAlias = int | Tensor


@dataclass(frozen=True, slots=True, eq=False)
class ObjectiveOutput:
    """The objective on one micro-batch; every tensor is a scalar in float32 or wider.

    total: with gradients; its share of the step's total.
    cross_entropy: sum of the full cross-entropy / num_tokens. auxiliary: sum / num_units,
    unweighted. Both have gradients where logits were given, none where hidden states were.
    cross_entropy_sum, auxiliary_sum: detached sums over the `tokens` and `units` of this batch.
    """

    total: Tensor
    cross_entropy: Tensor
    auxiliary: Tensor
    cross_entropy_sum: Tensor
    auxiliary_sum: Tensor
    tokens: int
    units: int


def numeric_objective(
    loss: NumericLoss | None,
    logits: Tensor,
    labels: Tensor,
    num_tokens: Count | None = None,
    num_units: Count | None = None,
    keys: Tensor | None = None,
) -> ObjectiveOutput:
    """The objective over logits [B, T, V] and labels [B, T], aligned (no shift), -100 ignored.

    `loss` is what `load_loss(spec).bind(vocabulary)` gives (None: cross-entropy alone). The logits
    may be wider than the tokenizer and in bf16 or fp16; sums are in float32, or in float64 where
    the logits are. `num_tokens` and `num_units`, both or neither, are those of the whole optimiser
    step; without them, this batch's own. Without a numeric target the auxiliary is a zero with a
    gradient path. `keys` [B] int64 name example and step for a loss with noise, so that it is drawn
    again at every step but does not depend on how a batch is split; without them, the numbers of
    the rows.
    """
    if logits.dim() != 3 or logits.shape[:2] != labels.shape:
        raise ValueError(
            f"logits {tuple(logits.shape)} and labels {tuple(labels.shape)} are not aligned: pass "
            "logits [B, T, V] and labels [B, T]."
        )
    targets = supervised_targets(loss, labels, keys).to(logits.device)
    supervised = logits[targets.row, targets.position]  # [T, V]
    return logits_objective(loss, supervised, targets, num_tokens, num_units)


def logits_objective(
    loss: NumericLoss | None,
    logits: Tensor,
    targets: SupervisedTargets,
    num_tokens: Count | None = None,
    num_units: Count | None = None,
) -> ObjectiveOutput:
    """As `numeric_objective`, over the logits [T, V] of the supervised tokens alone."""
    _move(loss, logits, logits.shape[-1])
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))  # [T, V]
    log_partition = logits.logsumexp(-1)  # [T]
    label_logits = logits.gather(-1, targets.label[:, None])  # [T, 1]
    losses = log_partition - label_logits[:, 0]  # [T], cross-entropies
    trained = losses  # without smoothing
    auxiliary = logits[:0].sum()  # a zero with a gradient path
    coefficient, factor, counts = _weights(
        loss, targets, losses.detach(), num_tokens, num_units
    )

    with torch.autocast(logits.device.type, enabled=False):  # whose products are narrow
        if loss is not None and loss.label_smoothing:
            above_mean = log_partition - losses - logits.mean(-1)  # [T]
            trained = losses + loss.label_smoothing * above_mean
        if loss is not None and targets.units:
            numeric_logits = logits[targets.index[:, None], loss.token_ids]  # [M, N]
            partition = log_partition[targets.index]  # [M]
            numeric = targets.numeric(numeric_logits, partition, slice(None))
            auxiliary, _ = loss(numeric)
        total = coefficient @ trained + factor * auxiliary
    return _output(total, losses.sum(), auxiliary, targets, counts)


def hidden_objective(
    loss: NumericLoss | None,
    hidden: Tensor,
    head: OutputHead,
    targets: SupervisedTargets,
    num_tokens: Count | None = None,
    num_units: Count | None = None,
    chunk_elements: int | None = None,
) -> ObjectiveOutput:
    """The objective over the last hidden states [T, H] of the supervised tokens alone.

    Never holds the logits [T, V]: `chunk_elements` of them are made at a time, and their gradients
    with them (see `chunked_cross_entropy`). A head with a bias, scale or soft-cap takes the plain
    path through `logits_objective`; the log says so once.
    """
    if not head.plain:
        say_once(
            "The output head has a bias, scale or soft-cap: all logits are held at once."
        )
        return logits_objective(
            loss, head.logits(hidden), targets, num_tokens, num_units
        )
    _move(loss, hidden, head.weight.shape[0])

    wide = torch.promote_types(head.weight.dtype, torch.float32)
    ones = torch.ones(len(targets), dtype=wide, device=hidden.device)  # [T]
    coefficient, factor, counts = _weights(loss, targets, ones, num_tokens, num_units)
    auxiliary = ones.new_zeros(())
    term = None
    if loss is not None and targets.units:

        def value(logits: Tensor, log_partition: Tensor, part: slice) -> Tensor:
            summed, _ = loss(targets.numeric(logits, log_partition, part))
            auxiliary.add_(summed.detach())
            return factor * summed

        term = NumericTerm(
            targets.index, targets.rows, loss.token_ids, value, loss.separable
        )

    smoothing = 0.0 if loss is None else loss.label_smoothing
    total, losses = chunked_cross_entropy(
        hidden, head.weight, targets.label, coefficient, term, smoothing, chunk_elements
    )
    return _output(total, losses.sum(), auxiliary, targets, counts)


def _output(
    total: Tensor,
    cross_entropy: Tensor,
    auxiliary: Tensor,
    targets: SupervisedTargets,
    counts: tuple[Tensor, Tensor],
) -> ObjectiveOutput:
    """The output of these sums over a batch; counts are those of the step."""
    parts = cross_entropy / counts[0], auxiliary / counts[1]
    sums = cross_entropy.detach(), auxiliary.detach()
    return ObjectiveOutput(
        total, *parts, *sums, tokens=len(targets), units=targets.units
    )


def _move(loss: NumericLoss | None, like: Tensor, width: int) -> None:
    """The loss to the device of `like`, checked against V = width."""
    if loss is None:
        return
    if loss.largest_token_id >= width:
        raise ValueError(
            f"The numeric vocabulary has token {loss.largest_token_id}, but the logits have only "
            f"{width} columns: make the vocabulary from the tokenizer of this model."
        )
    loss.to(like.device)


def _weights(
    loss: NumericLoss | None,
    targets: SupervisedTargets,
    like: Tensor,
    num_tokens: Count | None,
    num_units: Count | None,
) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor]]:
    """(coefficient of each cross-entropy [T], factor of the auxiliary's sum, (tokens, units))."""
    if (num_tokens is None) != (num_units is None):
        counted, missing = "tokens", "units"
        if num_tokens is None:
            counted, missing = missing, counted
        raise ValueError(
            f"num_{counted} is given without num_{missing}: count both over the whole optimiser "
            "step (units by count_units(loss, labels)), or give neither."
        )

    # A batch without any token or unit adds 0 to the step: its sums are divided by at least 1.
    tokens = _denominator(num_tokens, like.numel(), like)
    units = _denominator(num_units, targets.units, like)
    coefficient = torch.ones_like(like) / tokens  # [T]
    if loss is None:
        return coefficient, torch.zeros_like(units), (tokens, units)
    if loss.replaces_cross_entropy:
        return coefficient.index_fill(0, targets.index, 0), 1 / tokens, (tokens, units)
    return coefficient, loss.weight / units, (tokens, units)


def _denominator(count: Count | None, of_batch: int, like: Tensor) -> Tensor:
    """A count as a scalar of the dtype and device of `like`, at least 1."""
    if isinstance(count, Tensor):
        return count.to(like).clamp(min=1)
    if count is None:
        count = of_batch
    if of_batch and count < 1:
        raise ValueError(
            f"A count of the step is {count}, but this batch alone has {of_batch}."
        )
    return like.new_full((), max(count, 1))


@functools.cache
def say_once(message: str) -> None:
    """Warn, but not again of the same."""
    logging.getLogger(__name__).warning(message)
