"""DEL, NL-NTL and RAFT against loops over the numbers of a text, and the authors' package."""

from fractions import Fraction
from itertools import product

import pytest
import torch
from torch.nn import functional as F

from smmd_bench.objective.objective import numeric_objective
from smmd_bench.objective.supervised import count_units
from smmd_bench.plugin_system.registry import load_loss

from .cases import encoded, expected_count, numbers, random_logits

TEXT = "Of 123 and 8, -9.05 is 7. So 3-45 = 6789 or 12345.67 or 0.625"
SHORT = ["123", "8", "9.05", "7", "3", "45", "0.625"]
NL_NTL = {  # as the authors' package has them
    "nl_ntl": {"reweigh": False},
    "nl_ntl[decimals=true]": {"reweigh": False, "float_level": True},
    "nl_ntl[reweigh=true]": {},
}


def digit_entropies(tokenizer, vocabulary, logits):
    """w / 10 * sum_i p_i BCE_i of each digit token, weighted as the authors do."""
    for _, tokens in numbers(tokenizer, TEXT):
        for at, token, exponent in tokens:
            weight = 2 * (exponent + 1) if exponent >= 0 else 1.02 ** (exponent - 1)
            x = logits[0, at, vocabulary.token_ids]
            hot = (vocabulary.values == int(token)).to(x)
            bce = F.binary_cross_entropy_with_logits(x, hot, reduction="none")
            yield weight / 10 * (bce * x.softmax(-1)).sum()


def relative_errors(pattern):
    """NL-NTL of each number that fits the pattern."""

    def errors(tokenizer, vocabulary, logits):
        p = logits[0][:, vocabulary.token_ids].softmax(-1)
        for _, tokens in numbers(tokenizer, TEXT, pattern):
            X = sum(expected_count(vocabulary, p[at], *of) for at, *of in tokens)
            Y = sum(10.0**exponent * int(token) for _, token, exponent in tokens)
            yield (X - Y).abs() / (X.abs() + abs(Y) + 2**-23)

    return errors


def squared_errors(whole):
    """RAFT of each short number; `whole`: over the whole vocabulary."""

    def errors(tokenizer, vocabulary, logits):
        ids = vocabulary.token_ids
        p = logits[0].softmax(-1)[:, ids] if whole else logits[0][:, ids].softmax(-1)
        for spelled, tokens in numbers(tokenizer, TEXT):
            if spelled in SHORT:
                X = sum(expected_count(vocabulary, p[at], *of) for at, *of in tokens)
                yield (X - float(Fraction(spelled))) ** 2

    return errors


LITERAL = {
    "del": digit_entropies,
    "nl_ntl": relative_errors(r"\d+"),
    "nl_ntl[decimals=true]": relative_errors(r"\d+(?:\.\d+)?"),
    "raft": squared_errors(whole=False),
    "raft[support=vocabulary]": squared_errors(whole=True),
}


@pytest.mark.parametrize("name", ["digit", "triple"])
@pytest.mark.parametrize("spec", LITERAL)
def test_is_the_literal_mean_with_its_gradient(spec, name):
    tokenizer, vocabulary, labels = encoded(name, TEXT)
    logits, bound = random_logits(labels, len(tokenizer)), load_loss(spec).bind(vocabulary)
    out = numeric_objective(bound, logits, labels)
    terms = list(LITERAL[spec](tokenizer, vocabulary, logits))
    expected = sum(terms) / len(terms)
    assert out.units == len(terms) == count_units(bound, labels)
    torch.testing.assert_close(out.auxiliary, expected)
    found, wanted = (torch.autograd.grad(x, logits)[0] for x in (out.auxiliary, expected))
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("spec", NL_NTL)
def test_nl_ntl_agrees_with_the_authors_package(spec):
    import ntloss

    tokenizer, vocabulary, labels = encoded("digit", TEXT)
    theirs = ntloss.NumberLevelLoss(tokenizer, **NL_NTL[spec])
    logits = random_logits(labels, len(tokenizer)).detach().float()
    out = numeric_objective(load_loss(spec).bind(vocabulary), logits, labels)
    torch.testing.assert_close(out.auxiliary, theirs(logits, labels), rtol=1e-5, atol=1e-6)


def test_raft_of_a_digit_string_is_the_mean_over_all_strings():
    """The expected value under p(number), the digits being independent."""
    _, vocabulary, labels = encoded("digit", "407")
    logits = random_logits(labels, 200)
    p = [x[vocabulary.token_ids].softmax(-1).tolist() for x in logits[0]]
    expected = sum(
        p[0][a] * p[1][b] * p[2][c] * int(f"{a}{b}{c}") for a, b, c in product(range(10), repeat=3)
    )
    out = numeric_objective(load_loss("raft").bind(vocabulary), logits, labels)
    assert out.auxiliary.item() == pytest.approx((expected - 407) ** 2, rel=1e-9)


def test_where_raft_replaces_cross_entropy_longer_numbers_keep_it():
    tokenizer, vocabulary, labels = encoded("digit", TEXT)
    logits = random_logits(labels, len(tokenizer))
    bound = load_loss("raft[add_cross_entropy=false,support=vocabulary]").bind(vocabulary)
    out = numeric_objective(bound, logits, labels)
    entropies = F.cross_entropy(logits[0], labels[0], reduction="none")
    found = dict(numbers(tokenizer, TEXT))
    replaced = sum(entropies[at] for spelled in SHORT for at, *_ in found[spelled])
    errors = sum(squared_errors(whole=True)(tokenizer, vocabulary, logits))
    torch.testing.assert_close(out.total, (entropies.sum() - replaced + errors) / labels.numel())
    longer = sum(len(tokens) for spelled, tokens in found.items() if spelled not in SHORT)
    assert out.units == count_units(bound, labels) == len(SHORT) + longer
