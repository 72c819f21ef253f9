"""Each defect of a loss is found by the check that is for it; the losses here have none."""

import pytest
import torch

from examples.own_loss import Huber
from smmd_bench.conformance.checks import run_checks
from smmd_bench.conformance.losses import LOSS_CHECKS
from smmd_bench.contracts import NumericLoss
from smmd_bench.errors import CellSkippedError
from smmd_bench.plugin_system.registry import load_loss, names


class Good(NumericLoss):
    """The Brier score: a sum over positions."""

    def forward(self, numeric):
        return self.terms(numeric).sum(), numeric.target.numel()

    def terms(self, numeric):
        p = numeric.logits.softmax(-1)
        return (
            (p - torch.nn.functional.one_hot(numeric.target, p.shape[1]))
            .square()
            .sum(-1)
        )


def but(**attributes):
    """A good loss, but for these attributes."""
    return type("Changed", (Good,), attributes)


def times(factor, **attributes):
    """A good loss whose terms have a factor."""
    return but(terms=lambda self, of: Good.terms(self, of) * factor(of), **attributes)


def log_p(self, numeric):
    return (
        -numeric.logits.softmax(-1).gather(1, numeric.target[:, None]).log().squeeze(1)
    )


class Trainable(Good):
    def __init__(self, loss, vocabulary):
        super().__init__(loss, vocabulary)
        self.scale = torch.nn.Parameter(torch.ones(()))


NOISY = times(lambda of: torch.rand(len(of.target)))
NOT_SEPARABLE = times(lambda of: torch.arange(len(of.target)), separable=True)
DEFECTS = [
    ("gradient", times(lambda of: of.logits.detach().square().mean(-1))),
    ("logits", but(terms=log_p)),
    (
        "micro-batches",
        but(forward=lambda self, of: (self.terms(of).mean(), len(of.target))),
    ),
    ("units", but(forward=lambda self, of: (self.terms(of).sum(), 1))),
    ("head passes", NOT_SEPARABLE),
    ("micro-batches", NOISY),
    ("contract", Trainable),
    ("no numeric targets", but(units=lambda self, places: max(1, len(places.target)))),
]


def spec(module=Good):
    """A loss whose module is given."""
    return type(
        "Spec", (Huber,), {"bind": lambda self, vocabulary: module(self, vocabulary)}
    )()


def states(loss):
    return {finding.check: finding.state for finding in run_checks(LOSS_CHECKS, loss)}


def test_a_loss_without_a_fault_passes_every_check():
    assert set(states(spec()).values()) == {"passed"}


@pytest.mark.parametrize(("check", "module"), DEFECTS)
def test_a_defect_is_found_by_its_check(check, module):
    outcomes = states(spec(module))
    assert outcomes[check] == "failed"
    if module not in (NOISY, NOT_SEPARABLE):
        assert list(outcomes.values()).count("failed") == 1


@pytest.mark.parametrize("name", names("losses"))
def test_the_losses_here_pass(name):
    assert set(states(load_loss(name)).values()) == {"passed"}


def test_what_cannot_apply_is_no_failure_and_any_other_error_is():
    def of_digits(error):
        def module(loss, vocabulary):
            if len(vocabulary) > 10:
                raise error
            return Good(loss, vocabulary)

        return spec(module)

    skips, fails = map(
        of_digits, (CellSkippedError("needs digits"), ValueError("too many"))
    )
    assert "failed" not in states(skips).values()
    assert states(fails)["logits"] == "failed"
