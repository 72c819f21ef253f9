"""Batches and vocabularies to try a loss on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from ..contracts import NumericLoss, NumericVocabulary
from ..objective.objective import ObjectiveOutput, numeric_objective

OTHERS = 5
"""Tokens of a case's vocabulary that are not numeric."""


def integers(n: int) -> NumericVocabulary:
    """V_num of the values 0..n-1, with token ids in another order than the values."""
    ids = torch.randperm(n + OTHERS, generator=torch.Generator().manual_seed(n))[:n]
    return NumericVocabulary(ids, torch.arange(n, dtype=torch.float64), "integer")


@dataclass(frozen=True)
class Batch:
    """Logits [B, T, V], labels [B, T] and keys [B] of a few rows, with some tokens ignored."""

    vocabulary: NumericVocabulary
    logits: Tensor
    labels: Tensor
    keys: Tensor

    def objective(self, bound: NumericLoss, logits: Tensor | None = None) -> ObjectiveOutput:
        """The objective of a bound loss, on these logits or others."""
        given = self.logits if logits is None else logits
        return numeric_objective(bound, given, self.labels, keys=self.keys)

    def rows(self, part: slice) -> Batch:
        """A micro-batch."""
        return Batch(self.vocabulary, self.logits[part], self.labels[part], self.keys[part])

    @property
    def ignored(self) -> Tensor:
        """[B, T] bool: where the label is -100."""
        return self.labels == -100


def make_batch(n: int = 10, rows: int = 4, length: int = 7) -> Batch:
    """Rows as training has them: an ignored prompt, then numbers of one to three tokens with other
    tokens between them, and padding after some."""
    generator = torch.Generator().manual_seed(0)
    vocabulary = integers(n)
    tokens = torch.arange(n + OTHERS)
    others = tokens[~torch.isin(tokens, vocabulary.token_ids)]
    labels = vocabulary.token_ids[torch.randint(n, (rows, length), generator=generator)]
    for row in range(rows):
        labels[row, : 1 + row % 2] = -100
        labels[row, 3 + row % 3] = others[row % len(others)]
        if row % 2:
            labels[row, length - 1] = -100
    shape = (rows, length, n + OTHERS)
    logits = 2 * torch.randn(shape, generator=generator, dtype=torch.float64)
    return Batch(vocabulary, logits, labels, 1000 + torch.arange(rows))


def gradient(function: Callable[[Tensor], Tensor], at: Tensor) -> tuple[Tensor, Tensor]:
    """(value, gradient) of a scalar function of logits."""
    leaf = at.detach().clone().requires_grad_()
    value = function(leaf)
    (found,) = torch.autograd.grad(value, leaf)
    return value.detach(), found
