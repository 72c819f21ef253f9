"""Each defect of a loss is found by the check that is for it; the losses here have none."""

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor

from smmd_bench.conformance.losses import LOSS_CHECKS
from smmd_bench.contracts import NumericLoss, NumericTargets, NumericVocabulary
from smmd_bench.plugin_system.registry import load_loss, names


class Good(NumericLoss):
    """The Brier score: a sum over positions."""

    def forward(self, numeric: NumericTargets) -> tuple[Tensor, int]:
        return self.terms(numeric).sum(), numeric.target.numel()

    def terms(self, numeric: NumericTargets) -> Tensor:
        p = numeric.logits.softmax(-1)
        return (p - torch.nn.functional.one_hot(numeric.target, p.shape[1])).square().sum(-1)


class WithoutGradient(Good):
    def terms(self, numeric: NumericTargets) -> Tensor:
        return super().terms(numeric) * numeric.logits.detach().square().mean(-1)


class Infinite(Good):
    def terms(self, numeric: NumericTargets) -> Tensor:
        return -numeric.logits.softmax(-1).gather(1, numeric.target[:, None]).log().squeeze(1)


class Mean(Good):
    def forward(self, numeric: NumericTargets) -> tuple[Tensor, int]:
        return self.terms(numeric).mean(), numeric.target.numel()


class OtherUnits(Good):
    def forward(self, numeric: NumericTargets) -> tuple[Tensor, int]:
        return self.terms(numeric).sum(), 1


class NotSeparable(Good):
    separable = True

    def terms(self, numeric: NumericTargets) -> Tensor:
        return super().terms(numeric) * torch.arange(len(numeric.target))


class Noisy(Good):
    def terms(self, numeric: NumericTargets) -> Tensor:
        return super().terms(numeric) * torch.rand(len(numeric.target))


class Trainable(Good):
    def __init__(self, loss: Any, vocabulary: NumericVocabulary) -> None:
        super().__init__(loss, vocabulary)
        self.scale = torch.nn.Parameter(torch.ones(()))


@dataclass(frozen=True)
class Spec:
    """A loss whose module is given."""

    name: ClassVar[str] = "spec"
    version: ClassVar[int] = 1
    replaces_cross_entropy: ClassVar[bool] = False
    weight: ClassVar[float] = 1.0
    module: type[NumericLoss] = Good

    def bind(self, vocabulary: NumericVocabulary) -> NumericLoss:
        return self.module(self, vocabulary)


class OnlyInBatches(Good):
    def forward(self, numeric: NumericTargets) -> tuple[Tensor, int]:
        assert len(numeric.target)
        return super().forward(numeric)


class CountsNothing(Good):
    def units(self, target: Tensor, row: Tensor, position: Tensor) -> int:
        return max(1, len(target))


def states(loss: Any) -> dict[str, str]:
    return {finding.check: finding.state for finding in LOSS_CHECKS.run(loss)}


def details(loss: Any) -> dict[str, str]:
    return {finding.check: finding.detail for finding in LOSS_CHECKS.run(loss)}


def test_a_loss_without_a_fault_passes_every_check():
    assert set(states(Spec()).values()) == {"passed"}


@pytest.mark.parametrize(
    ("module", "check"),
    [
        (WithoutGradient, "gradient"),
        (Infinite, "extreme logits"),
        (Mean, "micro-batches"),
        (OtherUnits, "units"),
        (NotSeparable, "separable"),
        (Noisy, "deterministic"),
        (Trainable, "contract"),
        (CountsNothing, "no numeric targets"),
    ],
)
def test_a_defect_is_found_by_its_check(module, check):
    found = states(Spec(module))
    assert found[check] == "failed"
    if module not in (Noisy, NotSeparable):
        assert list(found.values()).count("failed") == 1


@pytest.mark.parametrize("name", names("losses"))
def test_the_losses_here_pass(name):
    assert set(states(load_loss(name)).values()) == {"passed"}


def test_what_cannot_apply_is_no_failure():
    from smmd_bench.errors import CellSkippedError

    @dataclass(frozen=True)
    class DigitsOnly(Spec):
        def bind(self, vocabulary):
            if len(vocabulary) > 10:
                raise CellSkippedError("it needs single digits")
            return super().bind(vocabulary)

    assert states(DigitsOnly())["1,000 numeric tokens"] == "unchecked"
    assert "failed" not in states(DigitsOnly()).values()
    detail = details(DigitsOnly())["micro-batches"]
    assert detail.endswith("at N = 10 alone (at 1,000: it needs single digits)")


def test_any_other_error_at_1000_tokens_fails_the_micro_batches_too():
    @dataclass(frozen=True)
    class Overflows(Spec):
        def bind(self, vocabulary):
            if len(vocabulary) > 10:
                raise ValueError("too many tokens")
            return super().bind(vocabulary)

    found = states(Overflows())
    assert found["micro-batches"] == found["1,000 numeric tokens"] == "failed"
    assert details(Spec())["micro-batches"].endswith("of 4, at N = 10 and 1,000")


def test_forward_need_not_take_an_empty_batch_and_the_line_says_so():
    assert states(Spec(OnlyInBatches))["no numeric targets"] == "passed"
    assert "forward is not called" in details(Spec(OnlyInBatches))["no numeric targets"]
