"""CE: nothing beside the cross-entropy."""

import pytest
import torch

from smmd_bench.contracts import Loss
from smmd_bench.errors import UserError
from smmd_bench.registry import load_loss
from smmd_bench.training.numeric_loss import NumericLoss

from .cases import DIGITS, random_targets, vocabulary


def test_is_a_loss_that_binds_to_a_module():
    loss = load_loss("ce")
    assert isinstance(loss, Loss)
    assert isinstance(loss.bind(vocabulary(DIGITS)), NumericLoss)
    assert (loss.name, loss.weight, loss.replaces_cross_entropy) == ("ce", 0.0, False)


def test_adds_a_zero_over_no_units_with_a_gradient_path():
    targets = random_targets(DIGITS)
    bound = load_loss("ce").bind(vocabulary(DIGITS))
    total, units = bound(targets)
    assert (total.item(), units) == (0.0, 0)
    assert bound.units(targets.target, targets.row, targets.position) == 0
    (gradient,) = torch.autograd.grad(total, targets.logits)
    assert not gradient.any()


def test_takes_no_weight():
    with pytest.raises(UserError, match="Unknown parameter 'lambda' of ce: ce takes none"):
        load_loss("ce[lambda=1]")
