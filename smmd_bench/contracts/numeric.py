"""The numeric vocabulary and positions, the auxiliary of a loss over them, noise, runs of digits.

Random numbers are a function of their key, so that no splitting of a batch changes them. The hash
is SplitMix64 (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators"), in the
wrapping arithmetic of int64: every element is drawn by itself, without a generator's state.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor, nn

_Int64 = TypeVar("_Int64", Tensor, int)
_GAMMA = 0x9E3779B97F4A7C15 - 2**64  # as int64
_MULTIPLIERS = ((30, 0xBF58476D1CE4E5B9 - 2**64), (27, 0x94D049BB133111EB - 2**64))


@dataclass(frozen=True, slots=True, eq=False)
class NumericVocabulary:
    """V_num: the tokens that are numbers, with the bijection pi to 0..N-1 in order of value.

    token_ids: [N] int64. values: [N] float64, ascending; equal values are in order of token id.
    rule: how the tokens were chosen, see `smmd_bench.numeric_vocabulary`. digits: [N] int64, how
    many digits each token spells, 0 where it spells something else; None: those of an integer.
    points, minuses: the ids of the tokens that are a decimal point and a minus sign. blank_points:
    those of a point with a blank before it. leads: those after which a point begins a number, as in
    "=.5". others: the ids of the tokens outside V_num that end or begin with digits, such as "05",
    by how many these are. opens, closes: the ids of the tokens before or after whose digits
    something else stands, so that a number begins or ends there: " 10" opens one.
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
    blank_points: tuple[int, ...] = ()
    leads: tuple[int, ...] = ()

    def __len__(self) -> int:
        return int(self.token_ids.numel())

    def index_of(self, labels: Tensor) -> Tensor:
        """pi(y) for any integers of any shape: index into V_num, -1 outside it."""
        ids, order = self.token_ids.to(labels.device).sort()  # [N]
        # A label above all ids would be looked up beyond the last.
        place = torch.searchsorted(ids, labels.contiguous()).clamp(max=len(self) - 1)
        return order[place].where(ids[place] == labels, -1)

    def digits_of(self, target: Tensor) -> Tensor:
        """How many digits the tokens of these indices into V_num spell: int64 of any shape."""
        digits = self.digits
        if digits is None:
            values = self.values
            is_integer = (values >= 0) & (values == values.floor())
            powers = 10.0 ** torch.arange(1, 19, dtype=values.dtype)
            lengths = 1 + (values[:, None] >= powers).sum(1)
            digits = lengths.where(is_integer, 0)
        return digits.to(target.device)[target]

    def other_digits_of(self, labels: Tensor) -> Tensor:
        """How many digits vocabulary ids outside V_num spell: int64 of any shape, 0 for others."""
        lengths = torch.zeros_like(labels)
        for digits, tokens in self.others.items():
            ids = torch.tensor(tokens, device=labels.device)
            lengths[torch.isin(labels, ids)] = digits
        return lengths


@dataclass(frozen=True, slots=True, kw_only=True)
class NumericPlaces:
    """The positions of a batch whose target is a numeric token, in reading order: [M] each.

    target: int64, indices into V_num. row, position: int64, where in the batch it stands.
    key: int64, names the example and the optimiser step, however the batch is split: what a loss
    keys its noise to (`gumbel`).
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

    def partition(self, support: str) -> Tensor:
        """logsumexp over the whole `vocabulary`, or over V_num (`numeric`): [M], differentiable."""
        if support == "vocabulary":
            return self.log_partition
        return self.logits.logsumexp(-1)

    def residual(self) -> Tensor:
        """p - e_{pi(y)} with p = softmax(l[V_num]) (eq:pq_p), differentiable: [M, N]."""
        p = self.logits.softmax(-1)
        return p.scatter_add(1, self.target[:, None], -p.new_ones(len(p), 1))


class NumericLoss(nn.Module):  # type: ignore[misc]
    """Base of what `Loss.bind` returns: constants over V_num, and `forward` over `NumericTargets`.

    A loss writes `forward(numeric) -> (sum, units)`: the sum of its auxiliary over its units,
    a differentiable scalar of the dtype of `numeric.logits`, and the number of units. A unit is a
    numeric position unless the loss overrides `units`. The module holds no trainable parameter.

    loss: the plugin. weight: lambda. replaces_cross_entropy: see `smmd_bench.objective.objective`.
    token_ids: buffer [N] int64. values: buffer [N] float64, of V_num; `forward` casts constants to
    the logits. scale: buffer [N] float64, 10^digits of each token.
    """

    separable: ClassVar[bool] = False
    """The auxiliary is a sum over positions of terms that each depend on one position alone: it can
    be evaluated a few positions at a time, in less memory and fewer passes."""

    stops_gradient: ClassVar[bool] = False
    """A part of it counts as constant, so that its gradient is not that of finite differences."""

    label_smoothing: float = 0.0
    """Epsilon of the cross-entropy that is trained, as in `torch.nn.functional.cross_entropy`."""

    token_ids: Tensor
    values: Tensor
    scale: Tensor

    def __init__(self, loss: Any, vocabulary: NumericVocabulary) -> None:
        super().__init__()
        self.loss = loss
        self.weight = loss.weight
        self.replaces_cross_entropy = loss.replaces_cross_entropy
        self.vocabulary = vocabulary
        self.largest_token_id = int(vocabulary.token_ids.max())
        self.constant("token_ids", vocabulary.token_ids)
        self.constant("values", vocabulary.values)
        digits = vocabulary.digits_of(torch.arange(len(vocabulary)))
        self.constant("scale", 10.0 ** digits.double())

    def constant(self, name: str, value: Tensor) -> None:
        """Register a tensor that moves with the module and is in no checkpoint."""
        self.register_buffer(name, value, persistent=False)

    def units(self, places: NumericPlaces) -> int:
        """How many units these numeric positions make, known without any logits."""
        return int(places.target.numel())

    def find_spans(self, places: NumericPlaces) -> dict[str, Tensor]:
        """What `forward` needs of the places beyond themselves, such as where numbers begin.

        Found on the CPU with the batch, it moves to the device with it: a `nonzero` or a count in
        `forward` would make a GPU wait. `spans(numeric)` reads it there. Constants move with the
        module: keep what `find_spans`, `units` and `covers` need as a plain attribute.
        """
        return {}

    def spans(self, places: NumericPlaces) -> Mapping[str, Tensor]:
        """What `find_spans` found of these places when their batch was made, or finds now."""
        return places.spans or self.find_spans(places)

    def expected_values(self, p: Tensor, target: Tensor, place: Tensor) -> Tensor:
        """The expected value of tokens [M] of these places, in units of the place: [M] float64.

        p: [M, N] over V_num. Before the point a token counts its value. After it, it counts from
        the left, by its own digits: where 58 is right, as in 12.58, 5 counts 50 and 580 counts 58.
        """
        before_point = p @ self.values.to(p)  # [M]
        fraction = p @ (self.values / self.scale).to(p)  # [M], in [0, 1)
        after_point = fraction.double() * self.scale.to(p.device)[target]
        return before_point.double().where(place.abs() >= 1, after_point)

    def covers(self, target: Tensor) -> Tensor:
        """Which numeric targets [M] the loss acts on: [M] bool, by default all."""
        return torch.ones_like(target, dtype=torch.bool)


class NoAuxiliary(NumericLoss):
    """Nothing beside the cross-entropy: a zero over no units."""

    def units(self, places: NumericPlaces) -> int:
        """No position counts."""
        return 0

    def covers(self, target: Tensor) -> Tensor:
        """None of them."""
        return torch.zeros_like(target, dtype=torch.bool)

    def forward(self, numeric: NumericTargets) -> tuple[Tensor, int]:
        """A zero with a gradient path."""
        return torch.zeros_like(numeric.logits).mul(numeric.logits).sum(), 0


def mixed(*parts: Tensor | int) -> Tensor:
    """A 64-bit hash of the parts, which broadcast against each other: int64 of their shape."""
    # Numbers, which stand first, are hashed as such: as a tensor each takes 13 operations.
    key: Any = 0
    for part in parts:
        key = _splitmix(key + (part.long() if isinstance(part, Tensor) else int(part)))
    return torch.as_tensor(key)


def gumbel(key: Tensor) -> Tensor:
    """A standard Gumbel variate for every key: float64 of its shape, on its device."""
    # 52 bits, as many as float64 holds with a half added to them
    bits = _shifted(_splitmix(key), 12)
    uniform = (bits.double() + 0.5) * 2.0**-52  # in (0, 1), both open
    return -(-uniform.log()).log()


def _splitmix(key: _Int64) -> _Int64:
    z = _wrapped(key + _GAMMA)
    for shift, multiplier in _MULTIPLIERS:
        z = _wrapped((z ^ _shifted(z, shift)) * multiplier)
    return z ^ _shifted(z, 31)


def _wrapped(z: _Int64) -> _Int64:
    """z modulo 2**64 as int64, which a tensor of these is anyway."""
    return z if isinstance(z, Tensor) else (z + 2**63) % 2**64 - 2**63


def _shifted(z: _Int64, bits: int) -> _Int64:
    """z >> bits without its sign, as of an unsigned integer."""
    return (z >> bits) & ((1 << (64 - bits)) - 1)


def number_spans(
    row: Tensor,
    position: Tensor,
    digits: Tensor,
    joined: Tensor | None = None,
    apart: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """(number, digits after) of D numeric tokens in reading order: [D] int64 each.

    A number is a run of neighbouring positions of a row; numbers count from 0. row, position: [D]
    int64. digits: [D] int64, how many digits each spells; a token of 0 is a number of its own.
    joined: [D] bool, tokens that go on the number before them although they are no neighbours.
    apart: [D] bool, tokens that begin a number although they are.
    """
    starts = torch.ones_like(row, dtype=torch.bool)
    starts[1:] = (row[1:] != row[:-1]) | (position[1:] != position[:-1] + 1)
    if joined is not None:
        starts &= ~joined
    if apart is not None:
        starts |= apart
    alone = digits == 0
    starts |= alone
    starts[1:] |= alone[:-1]
    number = starts.cumsum(0) - 1  # [D], 0..S-1
    spelled = digits.cumsum(0)  # [D], through each token
    last = number.bincount().cumsum(0) - 1  # [S]
    return number, spelled[last][number] - spelled
