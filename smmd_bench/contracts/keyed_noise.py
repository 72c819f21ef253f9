"""Random numbers that are a function of their key, so that no splitting of a batch changes them.

The hash is SplitMix64 (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators"),
in the wrapping arithmetic of int64: every element is drawn by itself, without a generator's state.
"""

from __future__ import annotations

import torch
from torch import Tensor

_GAMMA = 0x9E3779B97F4A7C15 - 2**64  # as int64
_MULTIPLIERS = ((30, 0xBF58476D1CE4E5B9 - 2**64), (27, 0x94D049BB133111EB - 2**64))


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
