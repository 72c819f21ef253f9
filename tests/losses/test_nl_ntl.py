"""NL-NTL against the authors' package, and against a loop over the numbers of a text."""

import re

import pytest
import torch

from smmd_bench.objective.objective import numeric_objective
from smmd_bench.objective.supervised import count_units
from smmd_bench.plugin_system.registry import load_loss

from .cases import encoded, random_logits

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
