"""The Brier score against its formula, SMMD's with K = I, and what makes it proper."""

import pytest
import torch

from .cases import DIGITS, THOUSAND, UNEVEN, bind, predictions, random_targets


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
