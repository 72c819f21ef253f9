"""DEL, NL-NTL, NTIL and RAFT on targets with points, signs and thousands, against slow loops.

The loops follow the sources by the characters of the target: DEL and NTIL the authors' code
(PolyU-VCLab/DEL, xfey/NTIL), NL-NTL the package ntloss, RAFT its definition (Y - E[Y])^2. In all of
them a comma ends a number.
"""

import itertools
import math
import statistics

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from smmd_bench.objective.objective import numeric_objective
from smmd_bench.objective.supervised import count_units
from smmd_bench.plugin_system.registry import load_loss, names

from .cases import (
    assert_same_with_gradient,
    encoded,
    expected_count,
    numbers,
    random_logits,
)
from .test_ntil import number_terms

TEXT = "Of 123 and 8, -9.05 is 7. So 3-45 = 6789 or 12345.67 or 0.625"
TARGETS = [
    "12.58",
    "-0.05",
    "1,234.5",
    "0.5",
    ".5",
    "-.25",
    "5860.",
    "-7",
    "3.14159",
    TEXT,
]
ONE_NUMBER = r"\d+(?:\.\d+)?|^\.\d+|(?<=-)\.\d+"


def del_terms(tokenizer, vocabulary, logits, text):
    """w / 10 sum_i p_i BCE_i of each digit token."""
    for spelled, tokens in numbers(tokenizer, text, ONE_NUMBER):
        before_point = len(spelled.partition(".")[0])
        passed = 0
        for at, token, _ in tokens:
            passed += len(token)
            more = before_point - passed
            weight = 2 * (more + 1) if more >= 0 else 1.02 ** (more - 1)
            x = logits[at, vocabulary.token_ids]
            is_right = (vocabulary.values == int(token)).to(x)
            bce = F.binary_cross_entropy_with_logits(x, is_right, reduction="none")
            yield weight / 10 * (x.softmax(-1) * bce).sum()


def expected_numbers(
    tokenizer, vocabulary, logits, text, pattern=ONE_NUMBER, support="numeric"
):
    """(spelling, expected value) of each number."""
    p = logits[:, vocabulary.token_ids].softmax(-1)
    if support == "vocabulary":
        p = logits.softmax(-1)[:, vocabulary.token_ids]
    for spelled, tokens in numbers(tokenizer, text, pattern):
        yield spelled, sum(expected_count(vocabulary, p[at], *of) for at, *of in tokens)


def nl_ntl_terms(pattern):
    """The symmetric relative error of each number."""

    def terms(*of):
        for spelled, X in expected_numbers(*of, pattern):
            Y = float(spelled)
            yield (X - Y).abs() / (X.abs() + Y + 2**-23)

    return terms


def raft_terms(digits, **support):
    """(Y - E[Y])^2 of each number of so many digits before the point."""

    def terms(*of):
        for spelled, X in expected_numbers(*of, **support):
            if len(spelled.partition(".")[0]) <= digits:
                yield (X - float(spelled)) ** 2

    return terms


def ntil_terms(tokenizer, vocabulary, logits, text):
    """Of each run of single digits; without noise."""
    loss = load_loss("ntil[noise=0]")
    ids = tokenizer.convert_tokens_to_ids(list("0123456789"))
    for run in digit_runs(tokenizer.tokenize(text)):
        places, digits = zip(*run, strict=True)
        x = logits[[*places]][:, ids]
        emd, sequence = number_terms(loss, x, digits, places)
        yield sum(emd) + sequence


def digit_runs(tokens):
    """[(place, digit), ...] of each run of tokens that are a single digit."""
    is_digit = [len(token) == 1 and token.isdigit() for token in tokens]
    for single, run in itertools.groupby(range(len(tokens)), key=is_digit.__getitem__):
        if single:
            yield [(at, int(tokens[at])) for at in run]


LOOPS = {
    "del": del_terms,
    "nl_ntl": nl_ntl_terms(r"\d+"),
    "nl_ntl[decimals=true]": nl_ntl_terms(ONE_NUMBER),
    "ntil[noise=0]": ntil_terms,
    "raft": raft_terms(3),
    "raft[digits=4]": raft_terms(4),
    "raft[support=vocabulary]": raft_terms(3, support="vocabulary"),
}


@pytest.mark.parametrize("text", TARGETS)
@pytest.mark.parametrize("name", ["digit", "triple"])
@pytest.mark.parametrize("spec", LOOPS)
def test_a_decimal_has_the_value_and_gradient_of_the_slow_loop(spec, name, text):
    tokenizer, vocabulary, labels = encoded(name, text)
    loss = load_loss(spec).bind(vocabulary)
    logits = random_logits(labels, len(tokenizer))

    out = numeric_objective(loss, logits, labels)
    terms = list(LOOPS[spec](tokenizer, vocabulary, logits[0], text))

    assert out.units == len(terms) == count_units(loss, labels)
    if terms:
        expected = sum(terms) / len(terms)
        gradient = assert_same_with_gradient(
            out.auxiliary, expected, logits, rtol=1e-8, atol=1e-12
        )
        assert_finite_differences(loss, logits, labels, gradient)


def assert_finite_differences(loss, logits, labels, gradient):
    """The slope along a random direction is the gradient's."""
    generator = torch.Generator().manual_seed(1)
    direction = torch.randn(logits.shape, generator=generator, dtype=logits.dtype)
    step = 1e-6 * direction
    with torch.no_grad():
        ahead = numeric_objective(loss, logits + step, labels).auxiliary
        behind = numeric_objective(loss, logits - step, labels).auxiliary
    slope = (ahead - behind).item() / 2e-6
    expected = (gradient * direction).sum().item()
    assert slope == pytest.approx(expected, rel=1e-5, abs=1e-8)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12.58", 12.58),
        ("-0.05", -0.05),
        ("-.25", -0.25),
        ("5860.", 5860),
        ("=.5", 0.5),
    ],
)
@pytest.mark.parametrize("name", ["digit", "triple"])
def test_raft_is_zero_where_the_right_number_is_certain(name, text, value):
    """And where 0 is certain at every digit, its error is the square of the number."""
    tokenizer, vocabulary, labels = encoded(name, text)
    loss = load_loss("raft[digits=4]").bind(vocabulary)

    def error_where_certain(predicted):
        logits = certain_logits(predicted, len(tokenizer))
        return numeric_objective(loss, logits, labels).auxiliary.item()

    zeros = torch.full_like(labels, tokenizer.convert_tokens_to_ids("0"))
    assert error_where_certain(labels) == pytest.approx(0, abs=1e-20)
    assert error_where_certain(zeros) == pytest.approx(value**2, rel=1e-12)


def certain_logits(predicted, size):
    """Logits [B, T, size] that give all probability to these tokens [B, T]."""
    logits = torch.full((*predicted.shape, size), -1e4, dtype=torch.float64)
    return logits.scatter(2, predicted[..., None], 0.0)


@pytest.mark.parametrize(
    ("other", "number"), [("5", 12.5), ("580", 12.58), ("600", 12.6)]
)
def test_another_token_after_the_point_counts_what_it_spells(other, number):
    """Where 58 is right in 12.58, a token of one digit or of three stands for other hundredths."""
    tokenizer, vocabulary, labels = encoded("triple", "12.58")
    predicted = labels.clone()
    predicted[0, 2] = tokenizer.convert_tokens_to_ids(other)
    logits = certain_logits(predicted, len(tokenizer))
    raft = numeric_objective(load_loss("raft").bind(vocabulary), logits, labels)
    assert raft.auxiliary.item() == pytest.approx((12.58 - number) ** 2, abs=1e-12)


@pytest.mark.parametrize(
    ("text", "weights"),
    [
        ("12.58", [4, 2, 1.02**-2, 1.02**-3]),
        ("-0.05", [2, 1.02**-2, 1.02**-3]),
        ("1,234.5", [2, 6, 4, 2, 1.02**-2]),
        ("5860.", [8, 6, 4, 2]),
        (".5", [1.02**-2]),
    ],
)
def test_the_weights_of_del_are_those_of_the_places(text, weights):
    """At equal logits every digit costs the same but for its weight."""
    tokenizer, vocabulary, labels = encoded("digit", text)
    loss = load_loss("del").bind(vocabulary)
    logits = torch.zeros(*labels.shape, len(tokenizer), dtype=torch.float64)
    out = numeric_objective(loss, logits, labels)

    each = math.log(2) / 10  # p sums to 1
    expected = each * statistics.fmean(weights)
    assert out.auxiliary.item() == pytest.approx(expected, rel=1e-9)


numbers_as_written = st.builds(
    lambda sign, number, spelling: sign + format(number, spelling),
    st.sampled_from(["", "-", "=", "= ", "$", "-."]),
    st.decimals(0, 10**8, places=4)
    | st.decimals(0, 1, places=6)
    | st.integers(0, 10**12),
    st.sampled_from(["", ",", ".2f", ",.1f"]),
)
texts = st.lists(numbers_as_written, min_size=1, max_size=4).map(" ".join)


@pytest.mark.parametrize(
    "spec", [*names("losses"), "nl_ntl[decimals=true]", "raft[digits=9]"]
)
@pytest.mark.parametrize("name", ["digit", "triple"])
@given(text=texts, spread=st.sampled_from([0.0, 1.0, 30.0]), seed=st.integers(0, 9))
@settings(max_examples=25)
def test_every_loss_is_finite_with_its_gradient_on_numbers_of_any_spelling(
    name, spec, text, spread, seed
):
    tokenizer, vocabulary, labels = encoded(name, text)
    loss = load_loss(spec).bind(vocabulary)
    generator = torch.Generator().manual_seed(seed)
    logits = spread * torch.randn(*labels.shape, len(tokenizer), generator=generator)
    logits.requires_grad_()

    out = numeric_objective(loss, logits, labels)
    (gradient,) = torch.autograd.grad(out.total, logits)

    assert out.units == count_units(loss, labels)
    assert bool(out.total.isfinite())
    assert bool(gradient.isfinite().all())
