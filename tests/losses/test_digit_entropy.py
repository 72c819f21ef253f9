"""DEL against a loop over the characters of a text, as the authors group and weight digits."""

import re

import pytest
import torch
from torch.nn import functional as F

from smmd_bench.objective.objective import numeric_objective
from smmd_bench.plugin_system.registry import load_loss

from .cases import encoded, random_logits

TEXT = "Of 1234.567 and 8, -90.05 is 7. So 3-45 = 678.9"


def literal(tokenizer, vocabulary, text, logits, labels):
    """The mean over digit tokens of w / 10 * sum_i p_i BCE_i, number by number, digit by digit."""
    weights = []
    for number in re.findall(r"\d+(?:\.\d+)?", text):
        whole, _, decimals = number.partition(".")
        pieces = [tokenizer.tokenize(part) for part in (whole, decimals)]
        for at in range(len(pieces[0])):
            weights.append(2 * (len("".join(pieces[0][at + 1 :])) + 1))
        for at in range(len(pieces[1])):
            weights.append(1.02 ** -(len("".join(pieces[1][: at + 1])) + 1))
    terms = []
    for x, y in zip(logits[0], labels[0].tolist(), strict=True):
        if y in vocabulary.token_ids.tolist():
            x = x[vocabulary.token_ids]
            hot = (vocabulary.token_ids == y).to(x)
            bce = F.binary_cross_entropy_with_logits(x, hot, reduction="none")
            terms.append((bce * x.softmax(-1)).sum() / 10)
    return sum(w * term for w, term in zip(weights, terms, strict=True)) / len(terms)


@pytest.mark.parametrize("name", ["digit", "triple"])
def test_is_the_literal_mean_with_its_gradient(name):
    tokenizer, vocabulary, labels = encoded(name, TEXT)
    logits = random_logits(labels, len(tokenizer))
    out = numeric_objective(load_loss("del").bind(vocabulary), logits, labels)
    expected = literal(tokenizer, vocabulary, TEXT, logits, labels)
    torch.testing.assert_close(out.auxiliary, expected)
    found, wanted = (torch.autograd.grad(x, logits)[0] for x in (out.auxiliary, expected))
    torch.testing.assert_close(found, wanted)
