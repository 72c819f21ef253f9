"""CE: nothing beside the cross-entropy."""

import torch
from torch.nn import functional as F

from smmd_bench.objective.objective import numeric_objective

from .cases import DIGITS, bind, random_targets


def test_adds_a_zero_over_no_units_with_a_gradient_path():
    targets, bound = random_targets(DIGITS), bind(DIGITS, "ce")
    total, units = bound(targets)
    assert (total.item(), units) == (0.0, 0)
    assert bound.units(targets) == 0
    (gradient,) = torch.autograd.grad(total, targets.logits)
    assert not gradient.any()


def test_smoothing_is_that_of_torch():
    torch.manual_seed(0)
    logits, labels = torch.randn(2, 9, 40, dtype=torch.float64), torch.randint(40, (2, 9))
    labels[0, :3] = -100
    out = numeric_objective(bind(DIGITS, "ce[smoothing=0.1]"), logits, labels)
    flat = logits.flatten(0, 1), labels.flatten()
    torch.testing.assert_close(out.total, F.cross_entropy(*flat, label_smoothing=0.1))
    torch.testing.assert_close(out.cross_entropy, F.cross_entropy(*flat))
