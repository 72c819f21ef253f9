"""DIST2 against its formula, by torch.distributions."""

import math

import pytest
import torch
from torch.distributions import Categorical, kl_divergence

from .cases import DIGITS, UNEVEN, bind, predictions, random_targets


def soft_target(values, y, tau):
    weights = [math.exp(-((v - values[y]) ** 2) / tau) for v in values]
    return torch.tensor([w / sum(weights) for w in weights], dtype=torch.float64)


@pytest.mark.parametrize("values", [DIGITS, UNEVEN])
@pytest.mark.parametrize("tau", [1.0, 4.0])
def test_is_the_divergence(values, tau):
    targets = random_targets(values)
    expected = sum(
        kl_divergence(Categorical(soft_target(values, y, tau)), Categorical(torch.tensor(p))).item()
        for p, y in predictions(targets)
    )
    total, units = bind(values, f"dist2[tau={tau}]")(targets)
    assert total.item() == pytest.approx(expected, rel=1e-6)
    assert units == 7
