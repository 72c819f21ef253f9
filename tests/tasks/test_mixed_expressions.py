"""The arithmetic generator: equal to DeepMind's for the same seeds, and right by itself."""

import ast
import hashlib
import json
import random
import re
from fractions import Fraction
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from smmd_bench.tasks._mixed_expressions import (
    REGIMES,
    _EntropyLeftOverError,
    _Sampler,
    problems,
    split_of,
)

from ..conftest import DATA

# 200 (question, answer) pairs of the real package for each level and seed.
VECTORS = json.loads(
    (DATA / "arithmetic/mixed_vectors.json").read_text(encoding="utf-8")
)
# sha256 of 20,000 lines "question TAB answer" of the real package 1.0.1 with sympy 1.14.0 on
# Python 3.11, seed 12345: long enough to meet the rare paths (products of value 0, large primes).
DIGESTS = {
    "easy": "5d5a5aff9709050e2273f178de5aaf6b",
    "medium": "e718481f5de74bdbdfa6b14ab21816e1",
    "hard": "2abe4f25f9c8e747c54813198d7afc0e",
    "interpolate": "4fbac69d7329a8d09b3252dd92e2aedb",
    "extrapolate": "ae45afd60622422cd5e3eb159b3796aa",
}

levels = st.sampled_from(sorted(REGIMES))
seeds = st.integers(0, 2**32 - 1)
ranges = st.sampled_from([None, (1, 1), (1, 2), (1, 3), (2, 2), (1, 10)])


def draw_pairs(level, seed, count):
    """(question, answer) after `random.seed(seed); numpy.random.seed(seed)`, as the reference."""
    return [
        (problem.question, problem.answer) for problem in draw(level, seed, count=count)
    ]


def draw(level, seed, operations=None, count=20):
    stream = problems(
        REGIMES[level], random.Random(seed), np.random.RandomState(seed), operations
    )
    return list(islice(stream, count))


def evaluated(expression):
    """The value by Python's own grammar and exact fractions."""
    return eval(re.sub(r"\d+", r"Fraction(\g<0>)", expression))


@pytest.mark.parametrize(
    ("level", "seed"), [(level, seed) for level in VECTORS for seed in VECTORS[level]]
)
def test_every_vector_of_the_reference_is_reproduced(level, seed):
    expected = [tuple(pair) for pair in VECTORS[level][seed]]
    assert len(expected) == 200
    assert set(VECTORS) == set(DIGESTS) == set(REGIMES)
    assert draw_pairs(level, int(seed), 200) == expected


@pytest.mark.parametrize("level", DIGESTS)
def test_twenty_thousand_problems_have_the_digest_of_the_references(level):
    pairs = draw_pairs(level, 12345, 20_000)
    lines = [f"{question}\t{answer}" for question, answer in pairs]
    assert hashlib.sha256("\n".join(lines).encode()).hexdigest()[:32] == DIGESTS[level]


@given(levels, seeds, ranges)
def test_a_problem_is_right_in_all_its_parts(level, seed, operations):
    """Leaves are integers, so that a "/" is always an operation; a sign is a unary operator."""
    for problem in draw(level, seed, operations):
        # an irreducible fraction
        assert problem.answer == str(evaluated(problem.expression))
        nodes = ast.walk(ast.parse(problem.expression, mode="eval"))
        binary = sum(isinstance(node, ast.BinOp) for node in nodes)
        assert binary == problem.operations
        sentence = problem.question.partition(problem.expression)
        assert sentence[::2] in {
            ("", ""), ("What is ", "?"), ("Evaluate ", "."), ("Calculate ", "."),
            ("What is the value of ", "?"),
        }  # fmt: skip


def test_a_problem_that_the_reference_dies_of_is_drawn_again():
    """Found by search: its first Dirichlet draw gives 1e-49 instead of 0 to a constant."""
    with pytest.raises(_EntropyLeftOverError):
        _Sampler(random.Random(6), np.random.RandomState(2114088)).problem(
            REGIMES["easy"], None
        )
    stream = problems(REGIMES["easy"], random.Random(6), np.random.RandomState(2114088))
    problem = next(stream)
    assert evaluated(problem.expression) == Fraction(problem.answer)


def test_splits_take_ninety_and_five_per_cent_of_expressions_and_never_change():
    expressions = {problem.expression for problem in draw("hard", 0, count=20_000)}
    splits = [split_of(expression) for expression in expressions]
    shares = {split: splits.count(split) / len(splits) for split in set(splits)}
    assert shares == pytest.approx(
        {"train": 0.90, "validation": 0.05, "test": 0.05}, abs=0.01
    )

    fixed = {
        "1 + 2": "train",
        "13 + 1": "test",
        "18 + 1": "validation",
        "50 + 1": "test",
    }
    assert {expression: split_of(expression) for expression in fixed} == fixed
