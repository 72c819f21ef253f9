"""Random arithmetic expressions with a chosen value: DeepMind's `arithmetic__mixed`, redrawn.

Source: https://github.com/google-deepmind/mathematics_dataset, commit 427f450 (package
mathematics-dataset 1.0.1), Apache-2.0, Copyright 2018 DeepMind Technologies Limited. This is a
modified rewrite without sympy. It consumes the same random numbers in the same order, so that a
seed gives the very same questions. Upstream, and where it stands here:

    modules/arithmetic.py   `_calculate`, `mixed`, `test_extra.mixed_longer`   `_Sampler.problem`
    sample/arithmetic.py    `_arithmetic`, `_add_op`, `_SampleArgs.split` ...  `_Sampler.expression`
    sample/number.py        `integer`, `non_integer_rational` ...              `_mixed_integers`
    sample/ops.py           `bracketed` and the `__str__` of each operation    `_NOTATION`
    generate.py             `_make_entropy_fn`, `sample_from_module`           `REGIMES`, `problems`

A problem of the level `easy`: "What is the value of (-13)/(702/420) - -8?" has the answer "2/9".

Quirks of the source, kept: leaves are always integers, so every "/" is an operation; a*(b/c) is
printed as "a*b/c"; the value is drawn first and the expression is built around it.

Not kept: about once in a million problems the Dirichlet share of an operand without operations is
not exactly 0.0, and the reference stops with an AssertionError; here that problem is drawn again.
The stream is that of the reference with sympy 1.14 (older ones shuffle their rules by the global
generator).
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ._mixed_integers import IntegerSampler, Value, difference, ratio, split_entropy

MAX_QUESTION_LENGTH = 160  # generate_settings.py
MAX_ANSWER_LENGTH = 30
_TEMPLATES = (
    "{}",
    "What is {}?",
    "Evaluate {}.",
    "Calculate {}.",
    "What is the value of {}?",
)
_Operands = tuple[Value, Value]


@dataclass(frozen=True, slots=True)
class Regime:
    """A difficulty level. Its entropy, log10 of the number of likely problems, is a range."""

    min_entropy: float
    max_entropy: float
    rationals: bool = True  # the answer may be a fraction, not only an integer
    # 9 to 11 operations: more than any training problem of the reference.
    longer: bool = False


REGIMES: Mapping[str, Regime] = {
    "easy": Regime(3 + 0 / 3 * 7, 3 + 1 / 3 * 7),
    "medium": Regime(3 + 1 / 3 * 7, 3 + 2 / 3 * 7),
    "hard": Regime(3 + 2 / 3 * 7, 3 + 3 / 3 * 7),
    "interpolate": Regime(8, 8),
    "extrapolate": Regime(10, 12, rationals=False, longer=True),
}


class Problem(NamedTuple):
    question: str  # "What is the value of (-13)/(702/420) - -8?"
    expression: str  # "(-13)/(702/420) - -8"
    answer: str  # "2/9": an integer or an irreducible fraction
    operations: int  # 3: the binary operations of the expression


def problems(
    regime: Regime,
    rng: random.Random,
    dirichlet_rng: np.random.RandomState,
    operations: tuple[int, int] | None = None,
) -> Iterator[Problem]:
    """An endless stream; overlong questions and answers are dropped as in the reference.

    operations: their least and largest number, drawn uniformly; None: as the reference does.
    """
    sampler = _Sampler(rng, dirichlet_rng)
    while True:
        try:
            problem = sampler.problem(regime, operations)
        except _EntropyLeftOverError:
            continue
        has_short_answer = len(problem.answer) <= MAX_ANSWER_LENGTH
        if has_short_answer and len(problem.question) <= MAX_QUESTION_LENGTH:
            yield problem


def split_of(expression: str) -> str:
    """The split that owns an expression, by its hash: train 90%, validation 5%, test 5%."""
    # A hash of the text: the same expression at two seeds is in one split.
    digest = hashlib.blake2b(expression.encode(), digest_size=8).digest()
    share = int.from_bytes(digest, "big") % 100
    return "train" if share < 90 else "validation" if share < 95 else "test"


class _EntropyLeftOverError(Exception):
    """An operand without operations got entropy: `assert sample_args.entropy == 0` upstream."""


class _Sampler(IntegerSampler):
    """Draws problems from the two generators."""

    def __init__(
        self, rng: random.Random, dirichlet_rng: np.random.RandomState
    ) -> None:
        super().__init__(rng)
        self.gamma = dirichlet_rng.standard_gamma
        self.operand_samplers = (self.add, self.sub, self.mul, self.div)

    def problem(self, regime: Regime, operations: tuple[int, int] | None) -> Problem:
        # Every draw comes in the order of the reference: the order is the data.
        count = 9 + self.below(3) if regime.longer and operations is None else None
        self.below(1)  # the number of modules upstream, from 1 to 1
        low, high = regime.min_entropy, regime.max_entropy
        entropy = low + (high - low) * self.uniform01()

        # Upstream gives a quarter to the value, and the rest to the expression.
        value_entropy = max(1.0, entropy / 4)
        entropy = max(1.0, entropy - value_entropy)
        if regime.rationals:
            value = self.integer_or_rational(value_entropy)
        else:
            value = self.integer(value_entropy, signed=True), 1

        if count is None:
            least, largest = operations or (3, 3 + int(entropy / 2))
            choices = largest - least + 1
            count = least + self.below(choices)
            entropy -= math.log10(choices)

        # Upstream's adjustment: different trees can lead to the same expression.
        entropy += _log10_binary_trees(count)
        expression, _ = self.expression(value, count, entropy)
        question = _TEMPLATES[self.below(5)].format(expression)
        p, q = value
        return Problem(question, expression, str(p) if q == 1 else f"{p}/{q}", count)

    def expression(self, value: Value, count: int, entropy: float) -> tuple[str, int]:
        """The text of an expression with this value and `count` operations, and its precedence."""
        if count == 0:
            if entropy != 0:
                raise _EntropyLeftOverError
            return str(value[0]), _CONSTANT if value[0] >= 0 else _PRODUCT

        # One operation can hold a fraction only as a division, and an integer as a product only if
        # the integer has enough divisors.
        if count >= 2:
            operation = self.below(4)
        elif value[1] != 1:
            operation = _DIV + self.below(1)
        elif entropy <= split_entropy(value[0]):
            operation = self.below(4)
        else:
            operation = (_ADD, _SUB, _DIV)[self.below(3)]
        own_entropy = entropy / count
        left, right = self.operand_samplers[operation](value, count, own_entropy)

        # Share out the other operations, one at least for a fraction, and with them the entropy.
        left_fraction, right_fraction = left[1] != 1, right[1] != 1
        spare = count - 1 - left_fraction - right_fraction
        left_spare = self.below(spare + 1)
        left_count = left_spare + left_fraction
        right_count = spare - left_spare + right_fraction
        if count == 1:
            left_entropy = right_entropy = 0.0
        else:
            # `RandomState.dirichlet` step by step, to the bit: two scalar draws are 4 times faster.
            left_gamma = self.gamma(left_count or 1e-9)
            right_gamma = self.gamma(right_count or 1e-9)
            scale = 1 / (left_gamma + right_gamma)
            left_entropy = left_gamma * scale * (entropy - own_entropy)
            right_entropy = right_gamma * scale * (entropy - own_entropy)
        left_text, left_precedence = self.expression(left, left_count, left_entropy)
        right_text, right_precedence = self.expression(
            right, right_count, right_entropy
        )

        symbol, precedence, left_brackets, right_brackets = _NOTATION[operation]
        if left_precedence >= left_brackets:
            left_text = f"({left_text})"
        if right_precedence >= right_brackets:
            right_text = f"({right_text})"
        return f"{left_text}{symbol}{right_text}", precedence

    def add(self, value: Value, count: int, entropy: float) -> _Operands:
        x = self.term(count, entropy)
        y = difference(value, x)
        return (x, y) if self.below(2) else (y, x)

    def sub(self, value: Value, count: int, entropy: float) -> _Operands:
        x = self.term(count, entropy)
        if self.below(2):
            return x, difference(x, value)
        return difference(value, (-x[0], x[1])), x

    def term(self, count: int, entropy: float) -> Value:
        if count >= 3:
            return self.integer_or_rational(entropy)
        return self.integer(entropy, signed=True), 1

    def mul(self, value: Value, count: int, entropy: float) -> _Operands:
        p, q = value
        left: Value
        right: Value
        if count >= 3:
            left, divisor = self.div(value, count, entropy)
            right = ratio(divisor[1], divisor[0])
        elif count == 1:
            a, b = self.factor_pair(p)
            left, right = (a, 1), (b, 1)
        else:
            # (a / m q) * (b m), since the other operation can make one fraction.
            a, b = self.factor_pair(p)
            entropy -= split_entropy(p)
            multiple = self.nonzero(entropy, a)
            left, right = ratio(a, multiple * q), (b * multiple, 1)
        return (right, left) if self.below(2) else (left, right)

    def div(self, value: Value, count: int, entropy: float) -> _Operands:
        p, q = value
        if count == 1:
            multiple = self.nonzero(entropy)
            return (p * multiple, 1), (q * multiple, 1)

        if count == 2:
            if p == 0 or self.below(2):
                x = self.nonzero(entropy, q)
                return ratio(x * p, q), (x, 1)
            x = self.nonzero(entropy, p)
            return (x, 1), ratio(x * q, p)

        # (r p1 / s q1) / (r q2 / s p2), with p = p1 p2 and q = q1 q2
        p2, p1 = self.factor_pair(p)
        q1, q2 = self.factor_pair(q)
        entropy -= split_entropy(p) + split_entropy(q)
        entropy_r = entropy * self.uniform01()
        entropy_s = entropy - entropy_r
        r = self.nonzero(entropy_r, q1 * p2)
        s = self.integer(entropy_s, signed=False, min_abs=1, coprime_to=p1 * q2)
        numerator = ratio(r * p1, s * q1)
        denominator = ratio(r * q2, s * p2)
        return numerator, denominator


_ADD, _SUB, _MUL, _DIV = range(4)
# Precedences, tightest first. Upstream a difference ranks with a sum; it is one looser here since
# inside a sum only a difference gets brackets. A negative constant ranks with a product.
_CONSTANT, _PRODUCT, _SUM, _DIFFERENCE, _ANYTHING = range(5)
# Symbol, precedence, and the precedence from which a left and a right operand get brackets.
_NOTATION = (
    (" + ", _SUM, _DIFFERENCE, _DIFFERENCE),
    (" - ", _DIFFERENCE, _ANYTHING, _SUM),
    ("*", _PRODUCT, _SUM, _SUM),
    ("/", _PRODUCT, _PRODUCT, _PRODUCT),
)


@lru_cache(maxsize=64)
def _log10_binary_trees(size: int) -> float:
    """log10 of the Catalan number: binary trees with `size` inner nodes."""
    log = 0.0
    for k in range(2, size + 1):
        log += math.log(size + k) - math.log(k)
    return log / math.log(10)
