"""The Brier score against its formula, SMMD's with K = I, and what makes it proper."""

import pytest
import torch

from .cases import (
    DIGITS,
    THOUSAND,
    UNEVEN,
    bind,
    of_wrong_prediction,
    predictions,
    random_targets,
    value,
)


@pytest.mark.parametrize("values", [DIGITS, UNEVEN])
def test_is_the_literal_sum(values):
    targets = random_targets(values)
    literal = sum((one - (i == y)) ** 2 for p, y in predictions(targets) for i, one in enumerate(p))
    total, units = bind(values, "brier")(targets)
    assert total.item() == pytest.approx(literal, rel=1e-12)
    assert units == 7


@pytest.mark.parametrize("values", [DIGITS, THOUSAND])
def test_is_the_mmd_of_smmd_whose_kernel_is_the_identity(values):
    narrow = bind(values, "smmd[sigma=0.001,term=mmd]")  # exp(-(1 / 0.001)^2 / 2) = 0
    assert torch.equal(narrow.matrix(torch.empty(0)), torch.eye(len(values)))
    targets, same = (random_targets(values) for _ in range(2))
    totals = bind(values, "brier")(targets)[0], narrow(same)[0]
    torch.testing.assert_close(*totals)
    found, wanted = (
        torch.autograd.grad(total, numeric.logits)[0]
        for total, numeric in zip(totals, (targets, same), strict=True)
    )
    torch.testing.assert_close(found, wanted)
    assert bind(values, "brier").weight == bind(values, "smmd").weight


def test_every_wrong_value_costs_the_same():
    costs = [of_wrong_prediction(bind(DIGITS, "brier"), wrong) for wrong in range(1, 10)]
    assert costs == pytest.approx([2.0] * 9)


def test_is_least_where_the_prediction_is_the_distribution_of_the_targets():
    """Strictly proper: the mean over targets y ~ q is |p - q|^2 above its least value."""
    q = torch.tensor([0.5, 0.3, 0.2] + [0.0] * 7, dtype=torch.float64)

    def mean(p):
        targets = random_targets(DIGITS, positions=3)
        targets.target.copy_(torch.arange(3))
        charged = []
        for y in range(3):
            targets.logits.data.fill_(0.0)[:] = (p + 1e-300).log()
            targets.target.fill_(y)
            charged.append(value(bind(DIGITS, "brier"), targets) / 3)
        return sum(w * c for w, c in zip(q.tolist(), charged, strict=False))

    other = torch.full((10,), 0.1, dtype=torch.float64)
    assert mean(other) - mean(q) == pytest.approx(float(((other - q) ** 2).sum()), rel=1e-9)
