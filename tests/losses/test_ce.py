"""CE: nothing beside the cross-entropy."""

import pytest
import torch
from torch.nn import functional as F

from smmd_bench.contracts import Loss, NumericLoss
from smmd_bench.errors import UserError
from smmd_bench.objective.objective import numeric_objective
from smmd_bench.plugin_system.registry import load_loss

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
    with pytest.raises(UserError, match="Unknown parameter 'lambda' of ce: known: smoothing"):
        load_loss("ce[lambda=1]")


def test_smoothing_is_that_of_torch():
    torch.manual_seed(0)
    logits, labels = torch.randn(2, 9, 40, dtype=torch.float64), torch.randint(40, (2, 9))
    labels[0, :3] = -100
    out = numeric_objective(load_loss("ce[smoothing=0.1]").bind(vocabulary(DIGITS)), logits, labels)
    flat = logits.flatten(0, 1), labels.flatten()
    torch.testing.assert_close(out.total, F.cross_entropy(*flat, label_smoothing=0.1))
    torch.testing.assert_close(out.cross_entropy, F.cross_entropy(*flat))


def test_smoothing_is_a_share():
    with pytest.raises(UserError, match="smoothing must be from 0 to 1"):
        load_loss("ce[smoothing=1.5]")
