"""NTIL: numerical token integrity loss (Fei et al. 2025, arXiv 2505.13077; app. eq:ntil_total)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from smmd_bench.contracts import (
    CellSkippedError,
    NumericLoss,
    NumericPlaces,
    NumericTargets,
    NumericVocabulary,
    factor,
    gumbel,
    mixed,
    non_negative,
    number_spans,
    parameter,
    positive,
)

_LARGEST_EXPONENT = 300
"""Places beyond it count like it: 10^308 is the largest power in float64."""


@dataclass(frozen=True)
class NumericTokenIntegrityLoss:
    """L = L_CE + lambda L_NTIL (eq:ce_plus_ntil_app).

    For a number of n digit tokens d_0 ... d_{n-1}, with p^(k) the softmax over the ten digits,

        L_EMD = sum_k (1 + tau)^(n-k-1) sum_i p_i^(k) |i - d_k|              eq:ntil_weighted_emd
        L_rel = |X - Y| / (max(X, Y) + epsilon)                              eq:ntil_seq_losses
        L_mag = log((max(X, Y) + epsilon) / (min(X, Y) + epsilon))
        L_NTIL = L_EMD + alpha L_rel + beta L_mag                            eq:ntil_total

    averaged over numbers. Y is the number, and X the one that the prediction spells:
    sum_k 10^(n-k-1) sum_i i g_i^(k), with g = softmax((l + noise) / temperature), a Gumbel-softmax.
    Noise is keyed to example, step and position, so that micro-batches and padding change nothing.

    A number is a run of the ten single-digit tokens among the targets; anything else ends it: a
    sign, a point, a comma, an unsupervised token, a token of several digits, the end of the row. So
    with a tokenizer of N = 1000 most numbers are not seen at all: the training log says what share.

    Decimals: the formulas are of whole numbers, and the authors' code ends a number at whatever is
    no digit, so 12.58 is 12 and 58 here, too, -0.05 is 0 and 5 with two digits, and 1,234.5 is 1,
    234 and 5: 0.58 weighs as much as 58, and 0.5 and 0.05 are as far from 0 as 5 is.

    The paper gives no epsilon and no temperature, and its L_mag is infinite at 0: epsilon = 1 in
    both terms and temperature = 0.1 are those of the authors' code (github.com/xfey/NTIL, ntil.py
    at 1d32c5b). That code differs in more: its noise is scaled by 0.01 (`noise=0.01`); its digits
    are hard, with straight-through gradients (`hard`); L_EMD is a mean over the digits of a row,
    L_rel and L_mag are means over its numbers, and rows are averaged (`reduction=authors`, which
    leaves out rows without a number: there they count as zeros); and the sum is rescaled at every
    step to lambda = 0.3 times the value of L_CE, which no option gives.
    """

    name: ClassVar[str] = "ntil"
    version: ClassVar[int] = 1
    replaces_cross_entropy: ClassVar[bool] = False
    relative_scale: ClassVar[dict[int, float]] = {10: 3.1}
    relative_scale_of: ClassVar[str] = (
        "numbers of one digit; 6.5 for two, 10.7 for three"
    )
    weight: float = factor(2.0)
    alpha: float = parameter(0.2, "weight of the relative term", check=non_negative)
    beta: float = parameter(0.2, "weight of the magnitude term", check=non_negative)
    tau: float = parameter(
        0.2, "growth of the weight from digit to digit", check=non_negative
    )
    epsilon: float = parameter(
        1.0, "added to both numbers, against division by 0", check=positive
    )
    temperature: float = parameter(0.1, "of the Gumbel-softmax", check=positive)
    noise: float = parameter(
        1.0, "scale of the Gumbel noise; 0: none", check=non_negative
    )
    hard: bool = parameter(False, "hard digits with straight-through gradients")
    reduction: Literal["numbers", "authors"] = parameter(
        "numbers", "mean over numbers, or by row"
    )

    def bind(self, vocabulary: NumericVocabulary) -> _IntegrityTerm:
        """The loss over the ten digits of V_num as a module. Raises CellSkippedError if V_num does
        not have one token for each digit."""
        return _IntegrityTerm(self, vocabulary)


class _IntegrityTerm(NumericLoss):
    """L_NTIL, summed over numbers (reduction=authors: over rows)."""

    columns: Tensor  # [10] int64: where in V_num the digits are

    def __init__(
        self, loss: NumericTokenIntegrityLoss, vocabulary: NumericVocabulary
    ) -> None:
        super().__init__(loss, vocabulary)
        digits = torch.arange(10)
        matches = vocabulary.values == digits[:, None]  # [10, N]
        tokens = matches.sum(1).tolist()
        if tokens != [1] * 10:
            raise CellSkippedError(
                "ntil needs one numeric token for each of the ten digits, and there are "
                f"{'+'.join(map(str, tokens))} (rule '{vocabulary.rule}'): try the rule 'integer'."
            )
        columns = matches.int().argmax(1)  # [10]
        self.constant("columns", columns)
        # which digit a numeric token is, -1 for none: [N], on the CPU, where spans are found
        self.digit = torch.full((len(vocabulary),), -1).index_copy(0, columns, digits)

    def covers(self, target: Tensor) -> Tensor:
        """The single digits."""
        return self.digit[target] >= 0

    def find_spans(self, places: NumericPlaces) -> dict[str, Tensor]:
        """The D digits among the positions (`index`), their values (`truth`), number, digits after
        them in it, row (0..R-1) and place in the row; where the S numbers and R rows begin."""
        index = self.covers(places.target).nonzero().squeeze(1)
        row, position = places.row[index], places.position[index]
        # A point ends a number, since only neighbours in the row belong together.
        number, exponent = number_spans(row, position, torch.ones_like(row))

        first = _changes(row)
        rows = first.cumsum(0) - 1
        return {
            "index": index,
            "truth": self.digit[places.target[index]],
            "number": number,
            "exponent": exponent.clamp(max=_LARGEST_EXPONENT),
            "row": rows,
            "offset": position - position[first][rows],  # padding changes nothing
            "numbers": _changes(number).nonzero().squeeze(1),
            "rows": first.nonzero().squeeze(1),
        }

    def units(self, places: NumericPlaces) -> int:
        """How many numbers there are, or with reduction=authors how many rows with a number."""
        averaged = "rows" if self.loss.reduction == "authors" else "numbers"
        return len(self.spans(places)[averaged])

    def forward(self, numeric: NumericTargets) -> tuple[Tensor, int]:
        spans = self.spans(numeric)
        number = spans["number"]  # [D], of D digits
        truth = spans["truth"]  # [D]
        exponent = spans["exponent"]  # [D]
        index = spans["index"]  # [D]
        logits = numeric.logits[:, self.columns][index]  # [D, 10]
        values = torch.arange(10, dtype=logits.dtype, device=logits.device)  # [10]

        distance = (values - truth[:, None]).abs()  # [D, 10]
        p = logits.softmax(-1)  # [D, 10]
        emd = (p * distance).sum(-1)  # [D]
        # Powers of long numbers overflow float32.
        exponent = exponent.double()
        growth = (1 + self.loss.tau) ** exponent  # [D]
        emd = emd.double() * growth

        # [D, 10]
        digits = self.draw_digits(logits, numeric.key[index], spans["offset"])
        drawn = (digits @ values).double()  # [D]
        power = 10.0**exponent  # [D]
        zeros = power.new_zeros(len(spans["numbers"]))  # [S]
        X = zeros.index_add(0, number, drawn * power)  # [S]
        Y = zeros.index_add(0, number, truth * power)  # [S]
        sequence = self.compare_numbers(X, Y)  # [S]

        if self.loss.reduction == "authors":
            row = spans["row"]  # [D]
            emd = _divide_by_row(emd, row, spans["rows"])
            sequence = _divide_by_row(sequence, row[spans["numbers"]], spans["rows"])
        return (emd.sum() + sequence.sum()).to(logits.dtype), self.units(numeric)

    def compare_numbers(self, predicted: Tensor, truth: Tensor) -> Tensor:
        """alpha L_rel + beta L_mag of predicted and true numbers: [S] each."""
        high = torch.maximum(predicted, truth) + self.loss.epsilon
        low = torch.minimum(predicted, truth) + self.loss.epsilon
        relative = (predicted - truth).abs() / high
        magnitude = (high / low).log()
        return self.loss.alpha * relative + self.loss.beta * magnitude

    def draw_digits(self, logits: Tensor, key: Tensor, offset: Tensor) -> Tensor:
        """The Gumbel-softmax g of the digits: [D, 10]. Its noise is keyed to the example, which
        `key` [D] is of, to the place in its row, `offset` [D], and to the digit."""
        if self.loss.noise:
            columns = torch.arange(10, device=key.device)  # [10]
            noise = gumbel(mixed(key[:, None], offset[:, None], columns))  # [D, 10]
            noise = self.loss.noise * noise
            logits = logits + noise.to(logits.dtype)

        g = (logits / self.loss.temperature).softmax(-1)  # [D, 10]
        if self.loss.hard:
            likeliest = g.argmax(1, keepdim=True)  # [D, 1]
            hard = torch.zeros_like(g).scatter(1, likeliest, 1.0)
            g = hard + (g - g.detach())  # the value is hard, to the last bit
        return g


def _divide_by_row(summands: Tensor, row: Tensor, rows: Tensor) -> Tensor:
    """Each summand divided by how many its row has: of rows 0..R-1, where R = len(rows)."""
    count = summands.new_zeros(len(rows)).index_add(0, row, torch.ones_like(summands))
    return summands / count[row]


def _changes(ascending: Tensor) -> Tensor:
    """Where a value is not that before it: [D] bool."""
    return torch.diff(ascending, prepend=ascending[:1] - 1) != 0
