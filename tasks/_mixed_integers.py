"""Random integers and fractions of a chosen entropy: what `_mixed_expressions` builds from.

A rewrite of `sample/number.py` of DeepMind's mathematics_dataset (see `_mixed_expressions` for its
licence). It consumes the same random numbers in the same order. An entropy is log10 of the number
of likely values.
"""

from __future__ import annotations

import math
import random
from functools import lru_cache

# A value is (numerator, denominator), irreducible with denominator >= 1. A fractions.Fraction would
# take four times as long to add.
Value = tuple[int, int]


class IntegerSampler:
    """Draws integers. Where it says `below(n)`, upstream has a choice or a randint."""

    def __init__(self, rng: random.Random) -> None:
        self.bits = rng.getrandbits
        self.uniform01 = rng.random

    def below(self, n: int) -> int:
        """Uniform in 0..n-1: `Random._randbelow`, which even for n=1 draws until a bit is 0."""
        # Without the layers of `randrange`, which take more time than the draw.
        bits = self.bits
        width = n.bit_length()
        value = bits(width)
        while value >= n:
            value = bits(width)
        return value

    def integer(
        self, entropy: float, *, signed: bool, min_abs: int = 0, coprime_to: int = 1
    ) -> int:
        """One of about 10**entropy integers."""
        coprime_to = abs(coprime_to)
        size = math.pow(10, entropy) + min_abs
        if coprime_to >= 2:
            # As many candidates as leave the wanted number coprime ones, on average.
            size = size / _coprime_density(coprime_to) + 1
        high = math.ceil(size / 2) if signed else math.ceil(size)
        low = -high if signed else min_abs
        while True:
            value = low + self.below(high - low + 1)
            if abs(value) >= min_abs and math.gcd(value, coprime_to) == 1:
                return value

    def nonzero(self, entropy: float, coprime_to: int = 1) -> int:
        """One of either sign, by which others can be multiplied and divided."""
        return self.integer(entropy, signed=True, min_abs=1, coprime_to=coprime_to)

    def integer_or_rational(self, entropy: float) -> Value:
        """An integer or, half of the time, a fraction."""
        if self.below(2):
            return self.integer(entropy, signed=True), 1
        p_entropy = entropy * self.uniform01()
        q_entropy = entropy - p_entropy
        p = self.nonzero(p_entropy)
        return p, self.integer(q_entropy, signed=False, min_abs=2, coprime_to=p)

    def factor_pair(self, integer: int) -> tuple[int, int]:
        """A random (a, b) with a * b == integer."""
        # Zero has every divisor; upstream takes 1 and 0.
        if integer == 0:
            return 1, 0
        left = 1
        for prime, multiplicity in _factors(integer):
            left *= prime ** self.below(multiplicity + 1)
        return left, integer // left


def ratio(p: int, q: int) -> Value:
    """p / q in lowest terms."""
    divisor = math.gcd(p, q)
    if q < 0:
        divisor = -divisor
    return p // divisor, q // divisor


def difference(x: Value, y: Value) -> Value:
    if x[1] == y[1] == 1:
        return x[0] - y[0], 1
    return ratio(x[0] * y[1] - y[0] * x[1], x[1] * y[1])


@lru_cache(maxsize=1 << 16)
def split_entropy(integer: int) -> float:
    """log10 of the number of ways in which `factor_pair` splits an integer."""
    total = 0.0
    for _, multiplicity in _factors(integer) if integer else ():
        # not sum(): Python 3.12 rounds it differently
        total += math.log10(multiplicity + 1)
    return total


@lru_cache(maxsize=1 << 16)
def _factors(integer: int) -> tuple[tuple[int, int], ...]:
    """(prime, multiplicity) in the order of `sympy.factorint`: ascending, -1 last; 0 not allowed.
    sympy may find two primes above 3600 in another order; none occurred in 800,000 problems."""
    n = abs(integer)
    factors = []
    prime = 2

    # Trial division is enough: the integers are small.
    while prime * prime <= n:
        multiplicity = 0
        while n % prime == 0:
            n //= prime
            multiplicity += 1
        if multiplicity:
            factors.append((prime, multiplicity))
        prime += 1 if prime == 2 else 2
    if n > 1:
        factors.append((n, 1))
    if integer < 0:
        factors.append((-1, 1))
    return tuple(factors)


@lru_cache(maxsize=1 << 16)
def _coprime_density(positive: int) -> float:
    """The share of integers that are coprime to this one."""
    density = 1.0
    for prime, _ in _factors(positive):
        density *= 1 - 1 / prime
    return density
