"""Losses that are a sum over positions, against their formulas in Python numbers."""

import math
from itertools import product

import pytest
import torch
from scipy.stats import energy_distance, entropy, wasserstein_distance

from smmd_bench.objective.objective import numeric_objective

from .cases import DIGITS, THOUSAND, UNEVEN, bind, gaussian, predictions, random_targets


def kernel(values, sigmas=(2.0,)):
    """K by eq:k_ij."""
    return [
        [
            sum(math.exp(-((a - b) ** 2) / (2 * s**2)) for s in sigmas) / len(sigmas)
            for b in values
        ]
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
    r = [p[i] - (i == y) for i in n]
    return sum(k[i][j] * (r[i] - r[j]) ** 2 for i, j in product(n, n)) / 2


def smmd(values, p, y):
    """Both, with alpha one over twice the mean degree."""
    mean_degree = sum(map(sum, kernel(values))) / len(values)
    return mmd(values, p, y) + dirichlet_energy(values, p, y) / (2 * mean_degree)


def dist2(tau):
    """The divergence of p from a soft target, which is a Gaussian of variance tau / 2."""
    return lambda values, p, y: entropy(gaussian(values, y, (tau / 2) ** 0.5), p)


def gce(sigma, emd=0.0):
    """Section 4.2, and the distance of prediction and target over how many tokens there are."""

    def loss(values, p, y):
        q = gaussian(values, y, sigma)
        distance = wasserstein_distance(values, values, p, q) / len(p)
        return emd * distance - sum(b * math.log(a) for a, b in zip(p, q, strict=True))

    return loss


def oll(alpha):
    """Each wrong value's -log(1 - p), where 1 - p is what all others have, by its distance."""

    def loss(values, p, y):
        masses = [math.fsum(p[:i] + p[i + 1 :]) for i in range(len(p))]
        costs = [abs(v - values[y]) ** alpha for v in values]
        return -sum(
            math.log(mass) * cost for mass, cost in zip(masses, costs, strict=True)
        )

    return loss


def log_sum_exp(x):
    top = max(x)
    return top + math.log(math.fsum(math.exp(one - top) for one in x))


FORMULAS = [
    (
        "brier",
        lambda values, p, y: sum((one - (i == y)) ** 2 for i, one in enumerate(p)),
    ),
    ("cramer", lambda values, p, y: energy_distance(values, [values[y]], p) ** 2 / 2),
    ("dist2[tau=1]", dist2(1)),
    ("dist2[tau=4]", dist2(4)),
    ("gce", gce(0.5)),
    ("gce[sigma=3]", gce(3)),
    ("gce[emd=0.7]", gce(0.5, 0.7)),
    ("oll", oll(1)),
    ("oll[alpha=1.5]", oll(1.5)),
    ("oll[alpha=2]", oll(2)),
    ("ntl", lambda values, p, y: wasserstein_distance(values, [values[y]], p)),
    ("numeric_ce[support=numeric]", lambda values, p, y: -math.log(p[y])),
    ("smmd[term=mmd]", mmd),
    ("smmd[term=mmd,sigma=0.5+3+5.5]", lambda *of: mmd(*of, sigmas=(0.5, 3, 5.5))),
    ("smmd[term=smooth,alpha=0.3]", lambda *of: 0.3 * dirichlet_energy(*of)),
    ("smmd", smmd),
]


CASES = [(*formula, values) for formula, values in product(FORMULAS, [DIGITS, UNEVEN])]
CASES += [(*formula, THOUSAND) for formula in FORMULAS if "smmd" not in formula[0]]


@pytest.mark.parametrize(("spec", "formula", "values"), CASES)
def test_is_the_sum_of_its_formula(spec, formula, values):
    targets = random_targets(values)
    expected = sum(formula(values, p, y) for p, y in predictions(targets))
    total, units = bind(values, spec)(targets)
    assert total.item() == pytest.approx(expected, rel=1e-9)
    assert units == 7


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("lead", [20, 5000])
@pytest.mark.parametrize("values", [DIGITS, THOUSAND])
def test_oll_is_exact_and_keeps_its_gradient_where_a_wrong_value_has_all_mass(
    values, lead, dtype
):
    bound = bind(values, "oll")
    ids = bound.token_ids
    wrong, right = ids[7], ids[2]
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(1, 1, 3 * len(values), generator=generator)
    logits = logits.to(dtype)
    logits[..., wrong] = lead
    logits.requires_grad_()
    auxiliary = numeric_objective(bound, logits, right.reshape(1, 1)).auxiliary

    x = logits[0, 0, ids].tolist()
    log_z = log_sum_exp(x)
    expected = 0.0
    for i in range(len(x)):
        others_of_i = x[:i] + x[i + 1 :]
        minus_log_wrong = log_z - log_sum_exp(others_of_i)
        expected += abs(i - 2) * minus_log_wrong

    assert auxiliary.item() == pytest.approx(expected, rel=1e-5)
    (gradient,) = torch.autograd.grad(auxiliary, logits)
    assert bool(gradient.isfinite().all())
    slope = gradient[..., wrong].item()
    assert slope == pytest.approx(7 - 2, rel=1e-2)
