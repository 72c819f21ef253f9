"""DIST2 against its formula, and against torch.distributions."""

import math

import pytest
import torch
from torch.distributions import Categorical, kl_divergence

from smmd_bench.contracts import Loss
from smmd_bench.errors import UserError
from smmd_bench.plugin_system.registry import load_loss

from .cases import DIGITS, UNEVEN, check_gradient, random_targets, softmax, value, vocabulary


def bind(values, spec="dist2"):
    return load_loss(spec).bind(vocabulary(values))


def soft_target(values, y, tau):
    weights = [math.exp(-((v - values[y]) ** 2) / tau) for v in values]
    return [w / sum(weights) for w in weights]


def test_defaults_are_the_sources():
    loss = load_loss("dist2")
    assert isinstance(loss, Loss)
    assert (loss.weight, loss.tau, loss.replaces_cross_entropy) == (0.1, 1.0, False)


def test_a_bad_parameter_is_the_users_error():
    with pytest.raises(UserError, match=r"tau must be from 0\.001"):
        load_loss("dist2[tau=0]")


@pytest.mark.parametrize("values", [DIGITS, UNEVEN])
@pytest.mark.parametrize("tau", [1.0, 4.0])
def test_is_the_divergence(values, tau):
    targets = random_targets(values)
    expected = sum(
        kl_divergence(
            Categorical(torch.tensor(soft_target(values, y, tau), dtype=torch.float64)),
            Categorical(torch.tensor(p, dtype=torch.float64)),
        ).item()
        for p, y in zip(softmax(targets.logits), targets.target.tolist(), strict=True)
    )
    total, units = bind(values, f"dist2[tau={tau}]")(targets)
    assert total.item() == pytest.approx(expected, rel=1e-6)
    assert units == 7


def test_over_the_whole_vocabulary_the_mass_outside_counts_too():
    targets = random_targets(DIGITS)  # log_partition is 1 above that of V_num
    whole = value(bind(DIGITS, "dist2[support=vocabulary]"), targets)
    assert whole == pytest.approx(value(bind(DIGITS), targets) + 7, rel=1e-12)


@pytest.mark.parametrize("spec", ["dist2", "dist2[support=vocabulary]", "dist2[tau=3]"])
def test_gradient_is_that_of_finite_differences(spec):
    check_gradient(bind(DIGITS, spec), DIGITS)


def test_is_zero_at_its_target_and_never_negative():
    targets = random_targets(DIGITS)
    assert value(bind(DIGITS), targets) > 0
    q = torch.tensor([soft_target(DIGITS, y, 1.0) for y in targets.target.tolist()]).double()
    targets.logits.data.copy_(q.log())
    assert abs(value(bind(DIGITS), targets)) < 1e-12


def test_far_values_leave_no_nan():
    values = [float(n) for n in range(1000)]
    targets = random_targets(values, 20, dtype=torch.float32)
    total, _ = bind(values)(targets)
    total.backward()
    assert math.isfinite(total.item())
    assert bool(targets.logits.grad.isfinite().all())
