"""Vocabularies and numeric targets to evaluate losses on."""

import math
import re
from dataclasses import replace
from functools import cache

import torch
from transformers import AutoTokenizer

from smmd_bench.contracts import NumericTargets, NumericVocabulary
from smmd_bench.encoding.numbers import numeric_vocabulary
from smmd_bench.objective.objective import numeric_objective
from smmd_bench.plugin_system.registry import load_loss

from ..conftest import TOKENIZERS

DIGITS = [float(n) for n in range(10)]
THOUSAND = [float(n) for n in range(1000)]
# two tokens of one value, as rule `float` allows
UNEVEN = [-3.5, 0.0, 0.25, 2.0, 2.0, 40.0]


def vocabulary(values):
    """V_num of any ascending values, with token ids in another order."""
    ids = torch.randperm(
        3 * len(values), generator=torch.Generator().manual_seed(len(values))
    )
    return NumericVocabulary(
        ids[: len(values)], torch.tensor(values, dtype=torch.float64), "test"
    )


def bind(values, spec):
    return load_loss(spec).bind(vocabulary(values))


def alone(logits, target):
    """Numbers of one token, each in a row of its own."""
    each = torch.arange(len(target))
    return NumericTargets(
        logits=logits,
        log_partition=logits.logsumexp(-1),
        target=target,
        row=each,
        position=torch.zeros_like(each),
        key=each,
        number=each,
        place=torch.ones(len(target), dtype=torch.float64),
        whole=torch.ones(len(target), dtype=torch.bool),
    )


def random_targets(values):
    """Two numbers of three tokens, and one of one, in one row."""
    each, generator = torch.arange(7), torch.Generator().manual_seed(0)
    logits = 2 * torch.randn(7, len(values), generator=generator, dtype=torch.float64)
    return replace(
        alone(logits, torch.randint(len(values), (7,), generator=generator)),
        logits=logits.clone().requires_grad_(),
        log_partition=(logits.logsumexp(-1) + 1).requires_grad_(),
        row=torch.zeros_like(each),
        position=each + each // 3,
        key=torch.zeros_like(each),
        number=each // 3,
        place=10.0 ** (2 - each % 3).clamp(max=6 - each).double(),
    )


def assert_same_with_gradient(actual, expected, logits, **tolerances):
    """Two scalars, and their gradients by the logits, are the same; returns the gradient."""
    torch.testing.assert_close(actual, expected, **tolerances)
    (gradient,) = torch.autograd.grad(actual, logits)
    (expected_gradient,) = torch.autograd.grad(expected, logits)
    torch.testing.assert_close(gradient, expected_gradient, **tolerances)
    return gradient


def require_agreement(spec, vocabulary, logits, labels, authors_loss):
    """Require that the auxiliary of a loss is what the authors' package gives."""
    out = numeric_objective(load_loss(spec).bind(vocabulary), logits, labels)
    expected = authors_loss(logits, labels)
    torch.testing.assert_close(out.auxiliary, expected, rtol=1e-5, atol=1e-6)


def value(loss, targets):
    """The sum that a bound loss gives, as a Python number."""
    return loss(targets)[0].item()


def gaussian(values, y, sigma):
    """q of GCE: a Gaussian around the target, over the values."""
    weights = [math.exp(-((v - values[y]) ** 2) / (2 * sigma**2)) for v in values]
    total = sum(weights)
    return [w / total for w in weights]


def predictions(targets):
    """(p, index of the target) position by position, in Python numbers (eq:pq_p)."""
    for x, y in zip(targets.logits.tolist(), targets.target.tolist(), strict=True):
        total = sum(map(math.exp, x))
        yield [math.exp(one) / total for one in x], y


@cache
def load_tokenizer(name):
    return AutoTokenizer.from_pretrained(TOKENIZERS / name)


def encoded(name, text):
    """(tokenizer, its numeric vocabulary, labels [1, T]) of a text."""
    tokenizer = load_tokenizer(name)
    ids = tokenizer.encode(text, add_special_tokens=False)
    return tokenizer, numeric_vocabulary(tokenizer), torch.tensor([ids])


def random_logits(labels, size):
    """[B, T, V] float64, a leaf with gradients."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(*labels.shape, size, generator=generator, dtype=torch.float64)
    return logits.requires_grad_()


def numbers(tokenizer, text, pattern=r"\d+(?:\.\d+)?"):
    """(spelling, [(index, token, exponent of ten)]) of a text's numbers; a loop by character."""
    starts, at = {}, 0
    for index, token in enumerate(tokenizer.tokenize(text)):
        starts[at] = index, token
        at += len(token)
    for match in re.finditer(pattern, text):
        decimals = len(match[0].partition(".")[2])
        tokens = []
        for place in range(match.start(), match.end()):
            index, token = starts.get(place, (None, "."))
            if token == ".":
                continue
            following = text[place + len(token) : match.end()].replace(".", "")
            tokens.append((index, token, len(following) - decimals))
        yield match[0], tokens


def expected_count(vocabulary, p, token, exponent):
    """What a token of a number counts by its prediction p [N]; a loop over V_num. After the point
    every token counts from the place where the right one begins."""
    counts = []
    for value in vocabulary.values.tolist():
        spelled = str(int(value))
        last = exponent if exponent >= 0 else exponent + len(token) - len(spelled)
        counts.append(int(spelled) * 10.0**last)
    return p @ torch.tensor(counts, dtype=p.dtype)
