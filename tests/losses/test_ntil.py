"""NTIL against a literal loop over numbers (app. eq:ntil_weighted_emd to eq:ntil_total)."""

from dataclasses import replace
from itertools import chain, groupby

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from smmd_bench.contracts import NumericVocabulary, gumbel, mixed
from smmd_bench.objective.objective import numeric_objective
from smmd_bench.objective.supervised import count_units
from smmd_bench.plugin_system.registry import load_loss

from .cases import DIGITS, assert_same_with_gradient, bind, random_targets, value

V = 40
OTHER = [20, 21, 22]  # a sign, a point, a word
TENS = [30, 31]  # the tokens 10 and 11, numeric but of two digits


VOCABULARY = NumericVocabulary(
    torch.tensor([*range(10), *TENS]), torch.arange(12, dtype=torch.float64), "test"
)
"""The digits 0..9 with the ids 0..9, and 10 and 11."""


def runs(labels):
    """The numbers of each row, as lists of (position, digit): a loop over tokens."""
    for row, line in enumerate(labels.tolist()):
        digits = [(place, y) for place, y in enumerate(line) if 0 <= y <= 9]
        for _, run in groupby(enumerate(digits), key=lambda item: item[1][0] - item[0]):
            yield row, [digit for _, digit in run]


def literal(loss, logits, labels, keys):
    """(sum over numbers, numbers) or, with reduction=authors, (sum over rows, rows)."""
    rows, first_places = {}, {}
    for row, run in runs(labels):
        places, digits = zip(*run, strict=True)
        first = first_places.setdefault(row, places[0])
        noise_keys = [mixed(keys[row], at - first, torch.arange(10)) for at in places]
        x = logits[row, places, :10]
        number = number_terms(loss, x, digits, noise_keys)
        rows.setdefault(row, []).append(number)

    if loss.reduction == "authors":
        return sum(map(row_mean, rows.values())), len(rows)
    total = 0.0
    numbers = list(chain(*rows.values()))
    for emd, sequence in numbers:
        total = total + sum(emd) + sequence
    return total, len(numbers)


def row_mean(numbers):
    """The mean over the digits of a row, and that over its numbers."""
    emd = [term for digits, _ in numbers for term in digits]
    sequences = [sequence for _, sequence in numbers]
    return sum(emd) / len(emd) + sum(sequences) / len(sequences)


def number_terms(loss, logits, digits, noise_keys):
    """(L_EMD of each digit, alpha L_rel + beta L_mag) of one number."""
    values = torch.arange(10)
    emd, X, Y = [], 0.0, 0.0
    place = len(digits)

    for x, digit, key in zip(logits, digits, noise_keys, strict=True):
        place -= 1
        distances = (values - digit).abs()
        distance = (x.softmax(-1) * distances).sum()
        weight = (1 + loss.tau) ** place
        emd.append(weight * distance)
        soft = sharpened(loss, x, key)
        expected_digit = (values * soft).sum()
        power = 10.0**place
        X = X + power * expected_digit
        Y = Y + power * digit

    Y = torch.tensor(Y, dtype=torch.float64)
    high = torch.maximum(X, Y) + loss.epsilon
    low = torch.minimum(X, Y) + loss.epsilon
    relative = (X - Y).abs() / high
    magnitude = torch.log(high / low)
    return emd, loss.alpha * relative + loss.beta * magnitude


def sharpened(loss, x, key):
    """The distribution over a digit that its number is read from."""
    if loss.noise:
        x = x + loss.noise * gumbel(key)
    soft = (x / loss.temperature).softmax(-1)
    if not loss.hard:
        return soft
    hard = torch.nn.functional.one_hot(soft.argmax(), 10)
    return hard + (soft - soft.detach())


tokens = st.one_of(
    st.integers(0, 9), st.integers(0, 9), st.sampled_from(OTHER), st.sampled_from(TENS),
    st.just(-100),
)  # fmt: skip
batches = st.integers(1, 12).flatmap(
    lambda width: st.lists(
        st.lists(tokens, min_size=width, max_size=width), min_size=1, max_size=4
    )
)
options = st.fixed_dictionaries(
    {
        "noise": st.sampled_from([0, 1, 0.01]),
        "hard": st.booleans(),
        "reduction": st.sampled_from(["numbers", "authors"]),
        "epsilon": st.sampled_from([1, 1e-3]),
        "temperature": st.sampled_from([0.1, 1]),
        "tau": st.sampled_from([0, 0.2]),
    }
)


def compare(spec, labels, seed):
    """The objective's auxiliary and its gradient against the literal loop, in float64."""
    loss = load_loss(spec).bind(VOCABULARY)
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(*labels.shape, V, generator=generator, dtype=torch.float64)
    logits.requires_grad_()
    keys = torch.randint(-(2**60), 2**60, (len(labels),), generator=generator)
    out = numeric_objective(loss, logits, labels, keys=keys)
    expected, units = literal(load_loss(spec), logits, labels, keys)
    assert out.units == units == count_units(loss, labels)
    if units:
        tolerances = {"rtol": 1e-10, "atol": 1e-10}
        assert_same_with_gradient(out.auxiliary, expected / units, logits, **tolerances)
    else:
        assert out.auxiliary.item() == 0.0


@given(batches, options, st.integers(0, 2**20))
@settings(max_examples=60)
def test_is_the_literal_loop_with_its_gradient(rows, changed, seed):
    parts = (f"{key}={str(x).lower()}" for key, x in changed.items())
    compare(f"ntil[{','.join(parts)}]", torch.tensor(rows), seed)


@pytest.mark.parametrize("spec", ["ntil", "ntil[noise=0]", "ntil[hard=true]"])
@pytest.mark.parametrize("length", [1, 40, 60])
def test_long_numbers(spec, length):
    labels = torch.randint(
        10, (2, length), generator=torch.Generator().manual_seed(length)
    )
    compare(spec, labels, 3)


def test_the_noise_follows_the_example_and_the_step_and_nothing_else():
    targets = random_targets(DIGITS)
    bound = bind(DIGITS, "ntil")

    def with_key(key, **changes):
        keys = torch.full_like(targets.row, key)
        return value(bound, replace(targets, key=keys, **changes))

    assert with_key(1) == with_key(1) != with_key(2)
    moved = {"row": targets.row + 3, "position": targets.position + 11}
    assert with_key(1, **moved) == with_key(1)
