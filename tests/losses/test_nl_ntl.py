"""NL-NTL against the authors' package, and against a loop over the numbers of a text."""

import math
import re

import pytest
import torch

from smmd_bench.objective.objective import numeric_objective
from smmd_bench.objective.supervised import count_units
from smmd_bench.plugin_system.registry import load_loss

from .cases import alone, encoded, random_logits, value

TEXT = "Of 1234 and 8, -90.05 is 7. So 3-45 = 0.625"
VARIANTS = {
    "nl_ntl": {"reweigh": False},
    "nl_ntl[decimals=true]": {"reweigh": False, "float_level": True},
    "nl_ntl[reweigh=true]": {},
}


@pytest.mark.parametrize("spec", VARIANTS)
def test_agrees_with_the_authors_package(spec):
    import ntloss

    tokenizer, vocabulary, labels = encoded("digit", TEXT)
    theirs = ntloss.NumberLevelLoss(tokenizer, **VARIANTS[spec])
    logits = random_logits(labels, len(tokenizer)).detach().float()
    out = numeric_objective(load_loss(spec).bind(vocabulary), logits, labels)
    torch.testing.assert_close(out.auxiliary, theirs(logits, labels), rtol=1e-5, atol=1e-6)


def literal(tokenizer, vocabulary, text, logits, pattern):
    """The mean over the numbers of the text, token by token."""
    rows = iter(logits[0])
    tokens = tokenizer.tokenize(text)
    of_token = [next(rows)[vocabulary.token_ids].softmax(-1) @ vocabulary.values for _ in tokens]
    starts, at = {}, 0
    for token, expected in zip(tokens, of_token, strict=True):
        starts[at] = token, expected
        at += len(token)
    errors = []
    for match in re.finditer(pattern, text):
        whole = match[0].partition(".")[0]
        X = Y = 0.0
        for place in range(match.start(), match.end()):
            if place in starts and starts[place][0] != ".":
                token, expected = starts[place]
                end = place + len(token) - match.start()
                exponent = len(whole) - end + (end > len(whole))
                X, Y = X + 10.0**exponent * expected, Y + 10.0**exponent * int(token)
        errors.append((X - Y).abs() / (X.abs() + abs(Y) + 2**-23))
    return sum(errors) / len(errors), len(errors)


@pytest.mark.parametrize("name", ["digit", "triple"])
@pytest.mark.parametrize(
    ("spec", "pattern"), [("nl_ntl", r"\d+"), ("nl_ntl[decimals=true]", r"\d+(\.\d+)?")]
)
def test_is_the_literal_mean_with_its_gradient(name, spec, pattern):
    tokenizer, vocabulary, labels = encoded(name, TEXT)
    logits = random_logits(labels, len(tokenizer))
    bound = load_loss(spec).bind(vocabulary)
    out = numeric_objective(bound, logits, labels)
    expected, units = literal(tokenizer, vocabulary, TEXT, logits, pattern)
    assert out.units == units == count_units(bound, labels)
    torch.testing.assert_close(out.auxiliary, expected)
    found, wanted = (torch.autograd.grad(x, logits)[0] for x in (out.auxiliary, expected))
    torch.testing.assert_close(found, wanted)


def test_an_error_in_a_leading_digit_costs_more():
    _, vocabulary, labels = encoded("digit", "555")
    costs = []
    for wrong in range(3):
        logits = torch.zeros(1, 3, 200).scatter(2, labels[..., None], 50.0)
        logits[0, wrong, vocabulary.token_ids[6]] = 100.0
        out = numeric_objective(load_loss("nl_ntl").bind(vocabulary), logits, labels)
        costs.append(out.auxiliary.item())
    assert costs == pytest.approx([100 / 1210, 10 / 1120, 1 / 1111], rel=1e-5)


@pytest.mark.parametrize("length", [40, 400])
def test_a_long_number_stays_finite_and_below_one(length):
    _, vocabulary, labels = encoded("digit", "9" * length)
    logits = random_logits(labels, 200)
    out = numeric_objective(load_loss("nl_ntl").bind(vocabulary), logits.float(), labels)
    out.total.backward()
    assert 0 < out.auxiliary.item() < 1
    assert bool(logits.grad.isfinite().all())


def test_zero_costs_one_until_the_prediction_is_nearly_certain():
    bound = load_loss("nl_ntl").bind(encoded("digit", "0")[1])

    def at(logit):
        logits = torch.zeros(1, 10, dtype=torch.float64)
        logits[0, 0] = logit
        return value(bound, alone(logits, torch.zeros(1, dtype=torch.int64)))

    assert at(0.0) == pytest.approx(1, abs=1e-6)
    assert at(10.0) == pytest.approx(1, abs=1e-3)
    assert at(40.0) < 1e-8
    assert math.isfinite(at(1000.0))
