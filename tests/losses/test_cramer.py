"""The CRPS over V_num against its other two forms, and what sets it apart from NTL and SMMD."""

import pytest
import torch
from scipy.stats import energy_distance

from .cases import DIGITS, THOUSAND, UNEVEN, bind, predictions, random_targets

UNEVEN_DIGITS = [(DIGITS, 0), (UNEVEN, 1), (UNEVEN, 2)]


@pytest.mark.parametrize(("values", "seed"), UNEVEN_DIGITS)
def test_is_the_expected_distance_less_half_the_spread(values, seed):
    targets = random_targets(values, seed=seed)
    literal = 0.0
    for p, y in predictions(targets):
        literal += sum(a * abs(v - values[y]) for a, v in zip(p, values, strict=True))
        literal -= sum(
            a * b * abs(v - w) / 2
            for a, v in zip(p, values, strict=True)
            for b, w in zip(p, values, strict=True)
        )
    total, units = bind(values, "cramer")(targets)
    assert total.item() == pytest.approx(literal, rel=1e-12)
    assert units == 7


@pytest.mark.parametrize("values", [DIGITS, UNEVEN, THOUSAND])
def test_is_half_the_squared_energy_distance(values):
    targets = random_targets(values, positions=3)
    literal = sum(
        energy_distance(values, [values[y]], u_weights=p) ** 2 / 2 for p, y in predictions(targets)
    )
    total, _ = bind(values, "cramer")(targets)
    assert total.item() == pytest.approx(literal, rel=1e-9)


def charged(spec, p, q):
    """The mean over targets y ~ q."""
    targets = random_targets(DIGITS, positions=10)
    targets.target.copy_(torch.arange(10))
    total = 0.0
    for y, weight in enumerate(q):
        one = random_targets(DIGITS, positions=1)
        one.target.fill_(y)
        one.logits.data[0] = (torch.tensor(p, dtype=torch.float64) + 1e-300).log()
        total += weight * bind(DIGITS, spec)(one)[0].item()
    return total


def test_is_strictly_proper_and_ntl_is_not():
    q = [0.25, 0, 0.5, 0, 0, 0.25, 0, 0, 0, 0]
    median = [0.0, 0, 1, 0, 0, 0, 0, 0, 0, 0]
    even = [0.1] * 10
    assert charged("cramer", q, q) < min(charged("cramer", p, q) for p in (median, even))
    assert charged("ntl", median, q) < charged("ntl", q, q)
