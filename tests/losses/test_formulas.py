"""Losses that are a sum over positions, against their formulas in Python numbers."""

import math
from itertools import product

import pytest
from scipy.stats import energy_distance, wasserstein_distance

from .cases import DIGITS, UNEVEN, bind, gaussian, predictions, random_targets


def kernel(values, sigmas=(2.0,)):
    """K by eq:k_ij."""
    return [
        [sum(math.exp(-((a - b) ** 2) / (2 * s**2)) for s in sigmas) / len(sigmas) for b in values]
        for a in values
    ]


def mmd(values, p, y, sigmas=(2.0,)):
    """E k(x,x') - 2 E k(x,y) + E k(y,y')."""
    k, n = kernel(values, sigmas), range(len(p))
    among = sum(p[i] * p[j] * k[i][j] for i, j in product(n, n))
    return among - 2 * sum(p[i] * k[i][y] for i in n) + k[y][y]


def dirichlet_energy(values, p, y):
    """1/2 sum_ij K_ij (r_i - r_j)^2, where r = p - q (eq:residual_r)."""
    k, n = kernel(values), range(len(p))
    r = [one - (i == y) for i, one in enumerate(p)]
    return sum(k[i][j] * (r[i] - r[j]) ** 2 for i, j in product(n, n)) / 2


def smmd(values, p, y):
    """Both, with alpha one over twice the mean degree."""
    mean_degree = sum(map(sum, kernel(values))) / len(values)
    return mmd(values, p, y) + dirichlet_energy(values, p, y) / (2 * mean_degree)


def cramer(values, p, y):
    """The expected distance, less half the spread."""
    n = range(len(p))
    spread = sum(p[i] * p[j] * abs(values[i] - values[j]) for i, j in product(n, n))
    return ntl(values, p, y) - spread / 2


def ntl(values, p, y):
    """app. eq:ntl_was_1d."""
    return sum(one * abs(v - values[y]) for one, v in zip(p, values, strict=True))


def dist2(tau):
    """The divergence of p from a soft target, which is a Gaussian of variance tau / 2."""

    def divergence(values, p, y):
        q = gaussian(values, y, (tau / 2) ** 0.5)
        return sum(b * math.log(b / a) for a, b in zip(p, q, strict=True) if b)

    return divergence


def gce(sigma):
    """Section 4.2."""
    return lambda values, p, y: (
        -sum(q * math.log(one) for q, one in zip(gaussian(values, y, sigma), p, strict=True))
    )


FORMULAS = [
    ("brier", lambda values, p, y: sum((one - (i == y)) ** 2 for i, one in enumerate(p))),
    ("cramer", cramer),
    ("cramer", lambda values, p, y: energy_distance(values, [values[y]], p) ** 2 / 2),
    ("dist2[tau=1]", dist2(1)),
    ("dist2[tau=4]", dist2(4)),
    ("gce", gce(0.5)),
    ("gce[sigma=3]", gce(3)),
    ("ntl", ntl),
    ("ntl", lambda values, p, y: wasserstein_distance(values, [values[y]], p)),
    ("numeric_ce[support=numeric]", lambda values, p, y: -math.log(p[y])),
    ("smmd[term=mmd]", mmd),
    ("smmd[term=mmd,sigma=0.5+3+5.5]", lambda *of: mmd(*of, sigmas=(0.5, 3, 5.5))),
    ("smmd[term=smooth,alpha=0.3]", lambda *of: 0.3 * dirichlet_energy(*of)),
    ("smmd", smmd),
]


@pytest.mark.parametrize("values", [DIGITS, UNEVEN])
@pytest.mark.parametrize(("spec", "formula"), FORMULAS)
def test_is_the_sum_of_its_formula(spec, formula, values):
    targets = random_targets(values)
    expected = sum(formula(values, p, y) for p, y in predictions(targets))
    total, units = bind(values, spec)(targets)
    assert total.item() == pytest.approx(expected, rel=1e-9)
    assert units == 7
