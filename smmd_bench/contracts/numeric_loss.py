"""The auxiliary of a loss, bound to one numeric vocabulary, noise for it, and runs of digits.

Random numbers are a function of their key, so that no splitting of a batch changes them. The hash
is SplitMix64 (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators"), in the
wrapping arithmetic of int64: every element is drawn by itself, without a generator's state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from .numeric import NumericPlaces, NumericTargets, NumericVocabulary, Weighting

_GAMMA = 0x9E3779B97F4A7C15 - 2**64  # as int64
_MULTIPLIERS = ((30, 0xBF58476D1CE4E5B9 - 2**64), (27, 0x94D049BB133111EB - 2**64))


class NumericLoss(nn.Module):  # type: ignore[misc]
    """Base of what `Loss.bind` returns: constants over V_num, and `forward` over `NumericTargets`.

    A loss writes `forward(numeric) -> (sum, units)`: the sum of its auxiliary over its units,
    a differentiable scalar of the dtype of `numeric.logits`, and the number of units. A unit is a
    numeric position unless the loss overrides `units`. The module holds no trainable parameter.

    loss: the plugin. weight: lambda. replaces_cross_entropy: see `smmd_bench.objective.objective`.
    token_ids: buffer [N] int64. values: buffer [N] float64, of V_num; `forward` casts constants to
    the logits.
    """

    separable: ClassVar[bool] = False
    """The auxiliary is a sum over positions of terms that each depend on one position alone.

    The harness then evaluates it a few positions at a time, in less memory and fewer passes.
    """

    label_smoothing: float = 0.0
    """Epsilon of the cross-entropy that is trained, as in `torch.nn.functional.cross_entropy`."""

    token_ids: Tensor
    values: Tensor

    def __init__(self, loss: Weighting, vocabulary: NumericVocabulary) -> None:
        super().__init__()
        self.loss: Any = loss
        self.weight = loss.weight
        self.replaces_cross_entropy = loss.replaces_cross_entropy
        self.vocabulary = vocabulary
        self.largest_token_id = int(vocabulary.token_ids.max())
        self.constant("token_ids", vocabulary.token_ids)
        self.constant("values", vocabulary.values)

    def constant(self, name: str, value: Tensor) -> None:
        """Register a tensor that moves with the module and is in no checkpoint."""
        self.register_buffer(name, value, persistent=False)

    def units(self, places: NumericPlaces) -> int:
        """How many units these numeric positions make, known without any logits.

        Asked on the CPU, when a batch is made: a step's units are counted before its first forward.
        """
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

    def covers(self, target: Tensor) -> Tensor:
        """Which numeric targets [M] the loss acts on: [M] bool, by default all."""
        return torch.ones_like(target, dtype=torch.bool)

    def forward(self, numeric: NumericTargets) -> tuple[Tensor, int]:
        """(sum of the auxiliary over its units, units)."""
        raise NotImplementedError(f"{type(self).__name__} has no forward(numeric).")


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
    key: Tensor | int = 0
    for part in parts:
        key = _splitmix(torch.as_tensor(part) + key)
    assert isinstance(key, Tensor)
    return key


def gumbel(key: Tensor) -> Tensor:
    """A standard Gumbel variate for every key: float64 of its shape, on its device."""
    uniform = (_shifted(_splitmix(key), 12).double() + 0.5) * 2.0**-52  # in (0, 1), both open
    return -(-uniform.log()).log()


def _splitmix(key: Tensor) -> Tensor:
    z = key + _GAMMA
    for shift, multiplier in _MULTIPLIERS:
        z = (z ^ _shifted(z, shift)) * multiplier
    return z ^ _shifted(z, 31)


def _shifted(z: Tensor, bits: int) -> Tensor:
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
