"""RAFT: regression-aware fine-tuning (Lukasik et al. 2025; Chiang et al. 2025, "TRACT")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from smmd_bench.contracts import (
    NumericLoss,
    NumericPlaces,
    NumericTargets,
    NumericVocabulary,
    between,
    factor,
    parameter,
)


@dataclass(frozen=True)
class RegressionAware:
    """L = L_CE + lambda L_RAFT.

    For a number Y of at most `digits` digits before its point, whose tokens y_k have the place
    values b_k (100, 1, 0.1; less than 0 after a minus sign), with p^(k) = softmax of the logits of
    V_num at the k-th (eq:pq_p),

        L_RAFT = (Y - sum_k b_k sum_i p_i^(k) v_i)^2

    averaged over these numbers: the squared error of the expected value under p(number), which is
    the prediction of least squared error (RAIL, arXiv 2403.04182). A number with digits outside
    V_num, such as 10005 spelled 100 and "05", is none of them. For a number of one token that
    is exact. For several it is the expectation if each digit were independent of those before it:
    training shows the model the right ones only, so p after other digits is not known.

    TRACT's code (github.com/d223302/TRACT at dcb7a64, finetuning_utils/cot_with_raft/
    custom_loss.py; read as a copy elsewhere) differs: its scores are the single tokens 1 to 5; p is
    over all tokens (`support=vocabulary`), so mass elsewhere counts as 0; the mean over a batch is
    divided by its size once more; and the score has no cross-entropy (`add_cross_entropy=false`),
    which is kept here because answers are decoded greedily, and not as expected values: 4 and 6
    with half the mass each expect 5. lambda = 1 is its weight. RAFT's text could not be opened.

    The error is in units of squared value, as there, and no source has a scale for larger numbers:
    longer ones than `digits` are left to the cross-entropy.

    Decimals: 12.58 and .5 are the numbers 12.58 and 0.5, as RAFT's real-valued targets ask for, and
    digits after the point make no number longer. After the point v_i counts from the left: where
    the token 58 is right, 5 is 0.5 and 580 is 0.58. A comma ends a number: 1,234.5 is 1 and 234.5.
    """

    name: ClassVar[str] = "raft"
    version: ClassVar[int] = 2
    relative_scale: ClassVar[dict[int, float]] = {10: 3.58, 1000: 12100}
    relative_scale_of: ClassVar[str] = (
        "numbers of one token; 362 (two) and 36200 (three) at N = 10"
    )
    weight: float = factor(1.0)
    digits: int = parameter(
        3,
        "numbers with more before the point have cross-entropy alone",
        check=between(1, 15),
    )
    support: Literal["numeric", "vocabulary"] = parameter(
        "numeric", "what p is normalised over"
    )
    add_cross_entropy: bool = parameter(
        True, "keep the cross-entropy at these numbers, too"
    )

    def __post_init__(self) -> None:
        if self.weight != 1.0 and not self.add_cross_entropy:
            raise ValueError(
                "lambda weights what is added: leave out add_cross_entropy=false."
            )

    @property
    def replaces_cross_entropy(self) -> bool:
        """Unless it is added to it."""
        return not self.add_cross_entropy

    def bind(self, vocabulary: NumericVocabulary) -> _RegressionTerm:
        """The loss with the values of V_num as a module."""
        return _RegressionTerm(self, vocabulary)


class _RegressionTerm(NumericLoss):
    """L_RAFT, summed over numbers; where it replaces it, also the cross-entropy of longer ones."""

    def find_spans(self, places: NumericPlaces) -> dict[str, Tensor]:
        """Which positions are of a `short` number, few of whose digits stand before the point, and
        all in V_num [M] bool; and where the units begin [U]: short numbers, and other positions
        where the loss replaces it."""
        # The first token of a number has the highest place, and its digits stand from there up.
        exponent = places.place.abs().log10().round().long()  # [M]
        before_point = exponent + self.vocabulary.digits_of(places.target)  # [M]
        longest = torch.zeros_like(exponent)  # [M], of each number
        longest = longest.scatter_reduce(0, places.number, before_point, "amax")
        short = longest[places.number] <= self.loss.digits  # [M]
        short &= places.whole

        steps = torch.diff(places.number, prepend=places.number[:1] - 1)
        starts = steps != 0  # [M]
        units = short & starts
        # Each position of a longer number is trained by its own cross-entropy.
        if self.loss.replaces_cross_entropy:
            units = ~short | starts
        return {"short": short, "units": units.nonzero().squeeze(1)}

    def units(self, places: NumericPlaces) -> int:
        """How many short numbers, and where the loss replaces it how many other positions."""
        return len(self.spans(places)["units"])

    def forward(self, numeric: NumericTargets) -> tuple[Tensor, int]:
        x = numeric.logits  # [M, N]
        short = self.spans(numeric)["short"]  # [M]
        p = x.softmax(-1)  # [M, N]
        if self.loss.support == "vocabulary":
            p = (x - numeric.log_partition[:, None]).exp()

        expected = self.expected_values(p, numeric.target, numeric.place)  # [M]
        truth = self.values.to(x.device)[numeric.target]  # [M] float64
        error = numeric.place * (expected - truth)
        error = error.where(short, 0.0)
        # The errors of a number's tokens add up before they are squared: 19 is near 20.
        # [M], of which the first count, as many as there are numbers
        of_number = torch.zeros_like(error).index_add(0, numeric.number, error)
        total = of_number.square().sum()

        if self.loss.replaces_cross_entropy:
            right = x.gather(1, numeric.target[:, None])  # [M, 1]
            cross_entropy = numeric.log_partition - right.squeeze(1)
            total = total + cross_entropy.where(~short, 0.0).sum()
        return total.to(x.dtype), self.units(numeric)
