"""The training objective: cross-entropy plus, or at numeric positions replaced by, an auxiliary.

With T supervised tokens and U units of the auxiliary in the whole optimiser step (all micro-batches
and processes), l the full-vocabulary cross-entropy of a token (eq. loss of the paper):

    additive loss    total = sum_t l_t / T  +  lambda * sum_u aux_u / U
    replacing loss   total = (sum_{t not numeric} l_t  +  sum_u aux_u) / T

The totals of micro-batches that share T and U add up to the total of the whole step. The reported
`cross_entropy` is always the full one, so that losses can be compared by it.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..contracts import NumericTargets
from .chunked_cross_entropy import NumericTerm, chunked_cross_entropy
from .numeric_loss import NumericLoss
from .output_head import OutputHead

_log = logging.getLogger(__name__)
Count = int | Tensor


@dataclass(frozen=True, slots=True)
class SupervisedTargets:
    """The supervised tokens of a batch, flat: [T] int64 each.

    label: the token to predict. row, position: where the logits that predict it stand.
    """

    label: Tensor
    row: Tensor
    position: Tensor

    def __len__(self) -> int:
        return self.label.numel()


@dataclass(frozen=True, slots=True)
class ObjectiveOutput:
    """The objective on one micro-batch.

    total: scalar with gradients; its share of the step's total.
    cross_entropy: sum of the full cross-entropy / num_tokens. auxiliary: sum / num_units,
    unweighted. Both have gradients where the logits were given, none where hidden states were.
    cross_entropy_sum, auxiliary_sum: detached scalars, over the `tokens` and `units` of this batch.
    """

    total: Tensor
    cross_entropy: Tensor
    auxiliary: Tensor
    cross_entropy_sum: Tensor
    auxiliary_sum: Tensor
    tokens: int
    units: int


def supervised_targets(labels: Tensor, ignore_index: int = -100) -> SupervisedTargets:
    """The supervised tokens of aligned labels [B, T]: the caller has done any shift."""
    row, position = (labels != ignore_index).nonzero(as_tuple=True)
    return SupervisedTargets(labels[row, position], row, position)


def count_units(loss: NumericLoss | None, labels: Tensor) -> int:
    """The units of the auxiliary in aligned labels [B, T], from the labels alone."""
    targets = supervised_targets(labels)
    return 0 if loss is None else _Numeric.of(loss, targets).units


def numeric_objective(
    loss: NumericLoss | None,
    logits: Tensor,
    labels: Tensor,
    num_tokens: Count | None = None,
    num_units: Count | None = None,
) -> ObjectiveOutput:
    """The objective over logits [B, T, V] and labels [B, T], aligned (no shift), -100 ignored.

    `loss` is what `load_loss(spec).bind(vocabulary)` gives (None: cross-entropy alone). The logits
    may be wider than the tokenizer and in bf16 or fp16; sums are in float32, or in float64 where
    the logits are. `num_tokens` and `num_units` are those of the whole optimiser step; without
    them, this batch's own. Without a numeric target the auxiliary is a zero with a gradient path.
    """
    if logits.shape[:-1] != labels.shape:
        raise ValueError(
            f"logits {tuple(logits.shape)} and labels {tuple(labels.shape)} are not aligned: pass "
            "logits [B, T, V] and labels [B, T]."
        )
    targets = supervised_targets(labels)
    return logits_objective(
        loss, logits[targets.row, targets.position], targets, num_tokens, num_units
    )


def logits_objective(
    loss: NumericLoss | None,
    logits: Tensor,
    targets: SupervisedTargets,
    num_tokens: Count | None = None,
    num_units: Count | None = None,
) -> ObjectiveOutput:
    """As `numeric_objective`, over the logits [T, V] of the supervised tokens only."""
    raise NotImplementedError


def hidden_objective(
    loss: NumericLoss | None,
    hidden: Tensor,
    head: OutputHead,
    targets: SupervisedTargets,
    num_tokens: Count | None = None,
    num_units: Count | None = None,
    chunk_rows: int | None = None,
) -> ObjectiveOutput:
    """The objective over the last hidden states [T, H] of the supervised tokens only.

    Never holds the logits [T, V]: they are made `chunk_rows` rows at a time, and their gradients
    with them (see `chunked_cross_entropy`). A head with a bias, scale or soft-cap takes the plain
    path through full logits of the supervised tokens; the log says so once.
    """
    raise NotImplementedError
