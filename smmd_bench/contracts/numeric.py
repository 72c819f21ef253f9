"""What a loss sees: the numeric vocabulary, and the numeric positions of a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True, eq=False)
class NumericVocabulary:
    """V_num: the tokens that are numbers, with the bijection pi to 0..N-1 in order of value.

    token_ids: [N] int64. values: [N] float64, ascending; equal values are in order of token id.
    rule: how the tokens were chosen, see `smmd_bench.numeric_vocabulary`.
    """

    token_ids: Tensor
    values: Tensor
    rule: str

    def __len__(self) -> int:
        return int(self.token_ids.numel())

    def index_of(self, labels: Tensor) -> Tensor:
        """pi(y) for vocabulary ids of any shape: index into V_num, -1 outside it.

        Any integer is allowed: -100, and ids beyond the tokenizer (padded vocabularies).
        """
        import torch

        ids, order = self.token_ids.to(labels.device).sort()  # [N]
        place = torch.searchsorted(ids, labels.contiguous()).clamp(max=len(self) - 1)
        return order[place].where(ids[place] == labels, -1)


@dataclass(frozen=True, slots=True)
class NumericTargets:
    """What a loss sees: the positions of a batch whose target is a numeric token.

    logits: [M, N] over V_num, float32 or wider, differentiable.
    log_partition: [M], logsumexp over the whole vocabulary, differentiable.
    target: [M] int64, indices into V_num. row, position: [M] int64, where in the batch it stands;
    in reading order. key: [M] int64, names the example and the optimiser step, however the batch is
    split: what a loss keys its noise to (`smmd_bench.contracts.numeric_loss.gumbel`).
    """

    logits: Tensor
    log_partition: Tensor
    target: Tensor
    row: Tensor
    position: Tensor
    key: Tensor


class Weighting(Protocol):
    """How an auxiliary counts beside the cross-entropy; a replacing loss is not weighted."""

    @property
    def replaces_cross_entropy(self) -> bool:
        """Whether the auxiliary stands in place of the cross-entropy at numeric positions."""

    @property
    def weight(self) -> float:
        """Lambda, by which an additive auxiliary is multiplied."""
