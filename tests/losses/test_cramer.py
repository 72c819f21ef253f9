"""The CRPS over V_num against its other two forms."""

import pytest
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
