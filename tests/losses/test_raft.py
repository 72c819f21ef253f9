"""RAFT against the mean over all digit strings, and against loops over the numbers of a text."""

import re
from fractions import Fraction
from itertools import product

import pytest
import torch
from torch.nn import functional as F

from smmd_bench.objective.objective import numeric_objective
from smmd_bench.objective.supervised import count_units
from smmd_bench.plugin_system.registry import load_loss

from .cases import DIGITS, THOUSAND, alone, bind, encoded, predictions, random_logits, value

TEXT = "Of 123 and 8, -9.05 is 7. So 3-45 = 6789 or 12345.67"
SHORT = ["123", "8", "9.05", "7", "3", "45"]


@pytest.mark.parametrize("values", [DIGITS, THOUSAND])
def test_for_one_token_it_is_the_squared_error_of_the_expected_value(values):
    target = torch.tensor([3, 7, 9])
    logits = torch.randn(3, len(values), dtype=torch.float64, generator=torch.Generator())
    targets = alone(logits, target)
    literal = sum(
        (sum(one * v for one, v in zip(p, values, strict=True)) - values[y]) ** 2
        for p, y in predictions(targets)
    )
    assert value(bind(values, "raft"), targets) == pytest.approx(literal, rel=1e-10)
    assert value(bind(values, "ntl[kind=mse]"), targets) == pytest.approx(literal, rel=1e-10)


def test_for_a_digit_string_it_is_the_mean_over_all_strings():
    """The expected value under p(number), the digits being independent."""
    _, vocabulary, labels = encoded("digit", "407")
    logits = random_logits(labels, 200)
    p = [x[vocabulary.token_ids].softmax(-1).tolist() for x in logits[0]]
    expected = sum(
        p[0][a] * p[1][b] * p[2][c] * int(f"{a}{b}{c}") for a, b, c in product(range(10), repeat=3)
    )
    out = numeric_objective(load_loss("raft").bind(vocabulary), logits, labels)
    assert out.auxiliary.item() == pytest.approx((expected - 407) ** 2, rel=1e-9)


def numbers(tokenizer, vocabulary, text, logits, whole=False):
    """{number of the text: (its squared error, cross-entropies of its tokens)}, in order."""
    ids = tokenizer.encode(text, add_special_tokens=False)
    tokens, at, starts = tokenizer.convert_ids_to_tokens(ids), 0, {}
    for token, y, x in zip(tokens, ids, logits[0], strict=True):
        p = x.softmax(-1)[vocabulary.token_ids] if whole else x[vocabulary.token_ids].softmax(-1)
        starts[at] = token, p @ vocabulary.values, F.cross_entropy(x, torch.tensor(y))
        at += len(token)
    found = []
    for match in re.finditer(r"\d+(?:\.\d+)?", text):
        spelled, expected, entropies = match[0], 0.0, []
        decimals = len(spelled.partition(".")[2])
        for place in range(match.start(), match.end()):
            if place in starts and starts[place][0] != ".":
                token, mean, entropy = starts[place]
                rest = spelled[place - match.start() + len(token) :].replace(".", "")
                expected = expected + 10.0 ** (len(rest) - decimals) * mean
                entropies.append(entropy)
        found.append((spelled, (expected - float(Fraction(spelled))) ** 2, entropies))
    return found


@pytest.mark.parametrize("name", ["digit", "triple"])
@pytest.mark.parametrize("support", ["numeric", "vocabulary"])
def test_is_the_literal_mean_over_short_numbers_with_its_gradient(name, support):
    tokenizer, vocabulary, labels = encoded(name, TEXT)
    logits = random_logits(labels, len(tokenizer))
    bound = load_loss(f"raft[support={support}]").bind(vocabulary)
    out = numeric_objective(bound, logits, labels)
    every = numbers(tokenizer, vocabulary, TEXT, logits, support == "vocabulary")
    errors = [error for spelled, error, _ in every if len(spelled.replace(".", "")) <= 3]
    assert [s for s, *_ in every if len(s.replace(".", "")) <= 3] == SHORT
    expected = sum(errors) / len(errors)
    assert out.units == len(errors) == count_units(bound, labels)
    torch.testing.assert_close(out.auxiliary, expected)
    found, wanted = (torch.autograd.grad(x, logits)[0] for x in (out.auxiliary, expected))
    torch.testing.assert_close(found, wanted)


def test_where_it_replaces_cross_entropy_longer_numbers_keep_it():
    tokenizer, vocabulary, labels = encoded("digit", TEXT)
    logits = random_logits(labels, len(tokenizer))
    spec = "raft[add_cross_entropy=false,support=vocabulary]"
    bound = load_loss(spec).bind(vocabulary)
    out = numeric_objective(bound, logits, labels)
    every = numbers(tokenizer, vocabulary, TEXT, logits, whole=True)
    expected = F.cross_entropy(logits[0], labels[0], reduction="sum")
    for spelled, error, entropies in every:
        if len(spelled.replace(".", "")) <= 3:
            expected = expected - sum(entropies) + error
    torch.testing.assert_close(out.total, expected / labels.numel())
    assert out.units == count_units(bound, labels) == len(SHORT) + 4 + 7
