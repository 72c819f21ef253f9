"""CE: nothing beside the cross-entropy."""

import torch

from .cases import DIGITS, bind, random_targets


def test_adds_a_zero_over_no_units_with_a_gradient_path():
    targets, bound = random_targets(DIGITS), bind(DIGITS, "ce")
    total, units = bound(targets)
    assert (total.item(), units) == (0.0, 0)
    assert bound.units(targets) == 0
    (gradient,) = torch.autograd.grad(total, targets.logits)
    assert not gradient.any()
