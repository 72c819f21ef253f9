"""The contract of a loss, and what it sees: the numeric vocabulary and positions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True, eq=False)
class NumericVocabulary:
    """V_num: the tokens that are numbers, with the bijection pi to 0..N-1 in order of value.

    token_ids: [N] int64. values: [N] float64, ascending; equal values are in order of token id.
    rule: how the tokens were chosen, see `smmd_bench.numeric_vocabulary`. digits: [N] int64, how
    many digits each token spells, 0 where it spells something else; None: those of an integer.
    points, minuses: the ids of the tokens that are a decimal point and a minus sign. others: the
    ids of the tokens outside V_num that end or begin with digits, such as "05", by how many these
    are. opens, closes: the ids of the tokens before or after whose digits something else stands,
    so that a number begins or ends there: " 10" opens one.
    """

    token_ids: Tensor
    values: Tensor
    rule: str
    digits: Tensor | None = None
    points: tuple[int, ...] = ()
    minuses: tuple[int, ...] = ()
    others: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    opens: tuple[int, ...] = ()
    closes: tuple[int, ...] = ()

    def __len__(self) -> int:
        return int(self.token_ids.numel())

    def index_of(self, labels: Tensor) -> Tensor:
        """pi(y) for any integers of any shape: index into V_num, -1 outside it."""
        import torch

        ids, order = self.token_ids.to(labels.device).sort()  # [N]
        place = torch.searchsorted(ids, labels.contiguous()).clamp(max=len(self) - 1)
        return order[place].where(ids[place] == labels, -1)

    def digits_of(self, target: Tensor) -> Tensor:
        """How many digits the tokens of these indices into V_num spell: int64 of any shape."""
        import torch

        digits = self.digits
        if digits is None:
            whole = (self.values >= 0) & (self.values == self.values.floor())
            powers = 10.0 ** torch.arange(1, 19, dtype=self.values.dtype)
            lengths = 1 + (self.values[:, None] >= powers).sum(1)
            digits = lengths.where(whole, 0)
        return digits.to(target.device)[target]

    def other_digits_of(self, labels: Tensor) -> Tensor:
        """How many digits vocabulary ids outside V_num spell: int64 of any shape, 0 for others."""
        import torch

        found = torch.zeros_like(labels)
        for digits, tokens in self.others.items():
            found[torch.isin(labels, torch.tensor(tokens, device=labels.device))] = digits
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class NumericPlaces:
    """The positions of a batch whose target is a numeric token, in reading order: [M] each.

    target: int64, indices into V_num. row, position: int64, where in the batch it stands.
    key: int64, names the example and the optimiser step, however the batch is split: what a loss
    keys its noise to (`smmd_bench.contracts.numeric_loss.gumbel`).
    number: int64, which number of the batch the token is a part of. place: float64, what the
    token's value counts in it, such as 100, 0.1 or -1, so that over a number place * value adds up
    to what the target says. whole: bool, whether all its digits are in V_num: 10005 is not, where
    it is spelled 100 and "05". spans: what the loss itself finds of the batch's positions, see
    `NumericLoss.find_spans`.
    """

    target: Tensor
    row: Tensor
    position: Tensor
    key: Tensor
    number: Tensor
    place: Tensor
    whole: Tensor
    spans: Mapping[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NumericTargets(NumericPlaces):
    """What a loss sees: numeric positions, and what the model predicts there.

    logits: [M, N] over V_num, float32 or wider, differentiable.
    log_partition: [M], logsumexp over the whole vocabulary, differentiable.
    """

    logits: Tensor
    log_partition: Tensor

    def residual(self) -> Tensor:
        """p - e_{pi(y)} with p = softmax(l[V_num]) (eq:pq_p), differentiable: [M, N]."""
        p = self.logits.softmax(-1)
        return p.scatter_add(1, self.target[:, None], -p.new_ones(len(p), 1))


class Weighting(Protocol):
    """How an auxiliary counts beside the cross-entropy; a replacing loss is not weighted."""

    @property
    def replaces_cross_entropy(self) -> bool:
        """Whether the auxiliary stands in place of the cross-entropy at numeric positions."""

    @property
    def weight(self) -> float:
        """Lambda, by which an additive auxiliary is multiplied."""
