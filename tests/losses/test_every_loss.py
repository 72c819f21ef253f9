"""What holds for every loss: the paper's defaults, refusals, gradients, zeros, stated scales."""

import math
from dataclasses import replace
from itertools import product

import pytest
import torch

from smmd_bench.contracts import Loss, NumericLoss
from smmd_bench.experiment.cell import _plugin_identity
from smmd_bench.objective.objective import numeric_objective
from smmd_bench.plugin_system.parameters import canonical
from smmd_bench.plugin_system.registry import load_loss, names
from tests.conftest import expect_user_error

from .cases import (
    DIGITS,
    UNEVEN,
    alone,
    bind,
    encoded,
    random_logits,
    random_targets,
    value,
    vocabulary,
)
from .test_ntl import VARIANTS as NTL
from .test_smmd import VARIANTS as SMMD

DEFAULTS = {
    "brier": {"weight": 3.0},
    "ce": {"weight": 0.0},
    "cramer": {"weight": 1.0},
    "del": {"weight": 0.01},
    "dist2": {"weight": 0.1, "tau": 1.0},
    "gce": {"sigma": 0.5, "support": "numeric", "replaces_cross_entropy": True},
    "gce[add_cross_entropy=true,lambda=0.5]": {"weight": 0.5},
    "gce[emd=0.5,gate=1]": {"emd": 0.5, "gate": 1.0, "replaces_cross_entropy": True},
    "nl_ntl": {"weight": 1.0, "decimals": False, "reweigh": False},
    "ntl": {"weight": 2.0},
    "ntil": {"weight": 2.0, "alpha": 0.2, "beta": 0.2, "tau": 0.2, "epsilon": 1.0,
             "temperature": 0.1, "noise": 1.0, "hard": False},
    "numeric_ce": {"weight": 1.0, "support": "vocabulary"},
    "numeric_dft": {"weight": 1.0},
    "oll": {"weight": 2.0, "alpha": 1.0},
    "raft": {"weight": 1.0, "digits": 3, "support": "numeric"},
    "raft[add_cross_entropy=false]": {"replaces_cross_entropy": True},
    "smmd": {"weight": 3.0, "sigma": (2.0,), "alpha": None},
}  # fmt: skip


@pytest.mark.parametrize("spec", DEFAULTS)
def test_defaults_are_the_papers(spec):
    loss = load_loss(spec)
    wanted = {"replaces_cross_entropy": False, **DEFAULTS[spec]}
    assert isinstance(loss, Loss)
    assert isinstance(bind(DIGITS, spec), NumericLoss)
    assert {name: getattr(loss, name) for name in wanted} == wanted
    assert canonical(loss) == spec


def test_parameters_that_came_later_are_in_no_address_at_their_defaults():
    former = {"add_cross_entropy", "lambda", "sigma", "support"}
    assert {*_plugin_identity(load_loss("gce"))["parameters"]} == former
    assert {*_plugin_identity(load_loss("gce[emd=0.5]"))["parameters"]} == {
        *former,
        "emd",
    }


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ("gce[sigma=0]", r"sigma must be from 0\.001 to 1,000,000"),
        ("ntl[kind=mse,squash=4]", "kind=mse has none: leave one out"),
        ("ntil[temperature=0]", "temperature must be >"),
        ("raft[lambda=2,add_cross_entropy=false]", "lambda weights what is added"),
        ("smmd[sigma=0]", r"sigma must be from 0\.001 to 1,000,000, each"),
        ("smmd[kernel_seed=3]", "kernel_seed is for kernel=shuffled"),
        ("smmd[kernel=random,term=mmd,squash=9]", "knows no distances"),
        ("smmd[kernel=random]", "a random kernel has no graph Laplacian: add term=mmd"),
    ],
)
def test_a_bad_parameter_is_the_users_error(spec, complaint):
    with expect_user_error(complaint):
        load_loss(spec)


DIFFERENTIABLE = [
    "brier", "cramer", "del", "numeric_ce", "numeric_ce[support=numeric]",
    "raft", "raft[support=vocabulary]", "raft[add_cross_entropy=false]",
    "nl_ntl", "nl_ntl[decimals=true]", "nl_ntl[reweigh=true]",
    "dist2", "dist2[support=vocabulary]", "dist2[tau=3]",
    "gce", "gce[support=vocabulary]", "gce[add_cross_entropy=true]", "gce[emd=0.5,gate=0.3]",
    "oll", "oll[alpha=1.5]",
    "ntil[temperature=1]", "ntil[noise=0,temperature=1]", "ntil[reduction=authors,temperature=1]",
    *NTL, *SMMD,
]  # fmt: skip


@pytest.mark.parametrize(
    ("spec", "values"), [*((spec, DIGITS) for spec in DIFFERENTIABLE), ("ntl", UNEVEN)]
)
def test_gradient_is_that_of_finite_differences(spec, values):
    targets = random_targets(values)
    loss = bind(values, spec)

    def total(logits, log_partition):
        return loss(replace(targets, logits=logits, log_partition=log_partition))[0]

    assert torch.autograd.gradcheck(total, (targets.logits, targets.log_partition))


ZERO = [("gce[sigma=0.01]", DIGITS), ("ntil[noise=0]", DIGITS)]
ZERO += product(
    ["brier", "cramer", "numeric_ce[support=numeric]", "numeric_dft", "oll"],
    [DIGITS, UNEVEN],
)
ZERO += product(
    [*SMMD, *(spec for spec in NTL if "reweigh" not in spec)], [DIGITS, UNEVEN]
)


@pytest.mark.parametrize(("spec", "values"), ZERO)
def test_is_zero_at_the_perfect_prediction(spec, values):
    n = len(values)
    logits = torch.full((n, n), -1e4, dtype=torch.float64).fill_diagonal_(0.0)
    assert value(bind(values, spec), alone(logits, torch.arange(n))) == 0.0


SPECS = sorted({*names("losses"), "raft[digits=4]"} - {"ce", "raft", "numeric_dft"})
TEXT = "In 1987 it was 3, then -45.5 of 678 and 90"


@pytest.mark.parametrize(("name", "size"), [("digit", 10), ("triple", 1000)])
@pytest.mark.parametrize("spec", SPECS)
def test_a_step_against_its_gradient_makes_it_less(spec, name, size):
    tokenizer, numeric_vocabulary, labels = encoded(name, TEXT)
    assert len(numeric_vocabulary) == size
    loss = load_loss(spec).bind(numeric_vocabulary)
    logits = random_logits(labels, len(tokenizer))
    start = numeric_objective(loss, logits, labels)
    assert start.units > 0
    (gradient,) = torch.autograd.grad(start.auxiliary, logits)

    index = numeric_vocabulary.index_of(labels)
    assert not bool(gradient[index < 0].any())
    covered = loss.covers(index[index >= 0])
    assert gradient[index >= 0].any(-1).tolist() == covered.tolist()

    step = 1e-3 * gradient / gradient.norm()
    end = numeric_objective(loss, (logits - step).detach(), labels)
    assert end.auxiliary < start.auxiliary


COPIES = 2000  # of each target where there is noise, each with its own
ADDED = map(load_loss, {*names("losses")} - {"ce", "gce"})
STATED = sorted((loss.name, n) for loss in ADDED for n in loss.relative_scale)


def measured(loss, n):
    """lambda * auxiliary over cross-entropy at a uniform guess, by all targets; each is a row of
    its own, which makes it a number for ntil."""
    bound = loss.bind(vocabulary([float(value) for value in range(n)]))
    target = torch.arange(n).repeat(COPIES if getattr(loss, "noise", 0) else 1)
    logits = torch.zeros(len(target), n, dtype=torch.float64)
    summed, units = bound(alone(logits, target))
    return loss.weight * float(summed) / units / math.log(n)


@pytest.mark.parametrize(("name", "n"), STATED)
def test_the_relative_scale_is_what_the_loss_gives(name, n):
    loss = load_loss(name)
    assert loss.relative_scale[n] == pytest.approx(measured(loss, n), rel=0.03)
