"""The checks of a loss, through the same objective that training uses."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.autograd.gradcheck import GradcheckError, gradcheck

from ..contracts import Loss, NumericLoss, NumericTargets, NumericVocabulary
from ..errors import CellSkippedError
from ..objective.objective import ObjectiveOutput, numeric_objective
from ..objective.supervised import count_units, supervised_targets
from .checks import fail, require

OTHERS = 5  # tokens of a case's vocabulary that are not numeric


def integers(n: int) -> NumericVocabulary:
    """V_num of the values 0..n-1, with token ids in another order than the values."""
    ids = torch.randperm(n + OTHERS, generator=torch.Generator().manual_seed(n))[:n]
    return NumericVocabulary(ids, torch.arange(n, dtype=torch.float64), "integer")


@dataclass(frozen=True)
class Batch:
    """Logits [B, T, V], labels [B, T] and keys [B] of a few rows, with some tokens ignored."""

    vocabulary: NumericVocabulary
    logits: Tensor
    labels: Tensor
    keys: Tensor

    def objective(self, bound: NumericLoss, logits: Tensor) -> ObjectiveOutput:
        """The objective of a bound loss on these logits."""
        return numeric_objective(bound, logits, self.labels, keys=self.keys)


def make_batch(n: int = 10, rows: int = 4, length: int = 7) -> Batch:
    """An ignored prompt, then numbers of one to three tokens with others between, then padding."""
    generator = torch.Generator().manual_seed(0)
    vocabulary = integers(n)
    tokens = torch.arange(n + OTHERS)
    others = tokens[~torch.isin(tokens, vocabulary.token_ids)]
    labels = vocabulary.token_ids[torch.randint(n, (rows, length), generator=generator)]
    for row in range(rows):
        labels[row, : 1 + row % 2] = -100
        labels[row, 3 + row % 3] = others[row % len(others)]
    labels[1::2, length - 1] = -100
    shape = (rows, length, n + OTHERS)
    logits = 2 * torch.randn(shape, generator=generator, dtype=torch.float64)
    return Batch(vocabulary, logits, labels, 1000 + torch.arange(rows))


def gradient(function: Callable[[Tensor], Tensor], at: Tensor) -> tuple[Tensor, Tensor]:
    """(value, gradient) of a scalar function of logits."""
    leaf = at.detach().clone().requires_grad_()
    value = function(leaf)
    (found,) = torch.autograd.grad(value, leaf)
    return value.detach(), found


def _contract(loss: Loss) -> None:
    """It binds to ten digits and has no trainable parameters."""
    require(isinstance(loss, Loss), "it lacks an attribute or method of Loss")
    weight = loss.weight
    require(math.isfinite(weight) and weight >= 0, f"weight is {weight}, not a number >= 0")
    bound = _bind(loss)
    name = type(bound).__name__
    require(isinstance(bound, NumericLoss), f"bind returns a {name}, not a NumericLoss")
    trainable = [name for name, _ in bound.named_parameters()]
    require(not trainable, f"the module has trainable parameters: {', '.join(trainable)}")


def _gradient(loss: Loss) -> None:
    """Total and auxiliary have the gradient of finite differences in float64."""
    case, bound = make_batch(rows=2, length=6), _bind(loss)

    def outputs(logits: Tensor) -> tuple[Tensor, Tensor]:
        out = case.objective(bound, logits)
        return out.total, out.auxiliary

    try:
        gradcheck(outputs, (case.logits.clone().requires_grad_(),))
    except GradcheckError as error:
        difference = str(error).splitlines()[0].rstrip(",. ")
        fail(f"it differs from finite differences, as a straight-through one does ({difference})")


def _extremes(loss: Loss) -> None:
    """Finite at equal, right and wrong certain logits; half precision has the value of float32."""
    case = make_batch()
    equal = torch.zeros(case.logits.shape)  # [B, T, V] float32
    right = equal.scatter(-1, case.labels.clamp(min=0)[..., None], 200.0)
    for name, logits in {"equal": equal, "right": right, "wrong": right.roll(1, -1)}.items():
        _require_finite(case, _bind(loss), logits, f" at {name} logits")
    for dtype in (torch.bfloat16, torch.float16):
        half = case.logits.to(dtype)
        value = _require_finite(case, _bind(loss), half, f" in {dtype}")
        wide = case.objective(_bind(loss), half.float()).total
        _close(value, wide, f"in {dtype} the value differs from float32", 1e-4)


def _units(loss: Loss) -> None:
    """A scalar sum; forward, with logits, and units(), without, count alike."""
    case, bound = make_batch(), _bind(loss)
    total, units = bound(_numeric(case, bound))
    require(total.dim() == 0, f"forward returns a sum of shape {list(total.shape)}, not a scalar")
    counted = count_units(bound, case.labels)
    require(int(units) == counted, f"forward says {int(units)} units and units() says {counted}")


def _micro_batches(loss: Loss) -> None:
    """The parts of a step add up to the whole, of 10 numeric tokens and of 1,000."""
    _split(make_batch(), _bind(loss))
    try:
        bound, case = _bind(loss, 1000), make_batch(1000)
    except CellSkippedError:
        return
    _require_finite(case, bound, case.logits.float(), " with 1,000 numeric tokens")
    _split(case, bound)


def _split(case: Batch, bound: NumericLoss) -> None:
    counts = int((case.labels != -100).sum()), count_units(bound, case.labels)

    def total(logits: Tensor, part: slice) -> Tensor:
        labels, keys = case.labels[part], case.keys[part]
        return numeric_objective(bound, logits, labels, *counts, keys).total

    whole, wanted = gradient(lambda x: total(x, slice(None)), case.logits)
    for at in (1, 2):
        first, last = slice(0, at), slice(at, None)
        one, left = gradient(lambda x, p=first: total(x, p), case.logits[first])  # type: ignore[misc]
        two, right = gradient(lambda x, p=last: total(x, p), case.logits[last])  # type: ignore[misc]
        _close(one + two, whole, f"the totals of {at} + {4 - at} rows are not that of 4")
        _close(torch.cat([left, right]), wanted, f"the gradients of {at} + {4 - at} rows differ")


def _separable(loss: Loss) -> None:
    """A loss that is declared separable adds up over parts of the positions."""
    case, bound = make_batch(), _bind(loss)
    if not bound.separable:
        return
    targets = supervised_targets(bound, case.labels, case.keys)
    whole = _numeric(case, bound)

    def part(p: slice) -> Tensor:
        return bound(targets.numeric(whole.logits[p], whole.log_partition[p], p))[0]

    wanted = bound(whole)[0]
    for at in range(1, len(whole.target)):
        halves = part(slice(0, at)) + part(slice(at, None))
        _close(halves, wanted, "it is declared, but parts do not add up")


def _deterministic(loss: Loss) -> None:
    """The same batch gives the same value, whatever torch's generator has drawn."""
    case = make_batch()
    one, other = (case.objective(_bind(loss), case.logits).total for _ in range(2))
    require(bool(one == other), "the same batch gives another value: draw noise by its keys")


def _no_targets(loss: Loss) -> None:
    """A batch without numbers, or ignored altogether, has no unit and a finite gradient."""
    case, bound = make_batch(), _bind(loss)
    numeric = bound.vocabulary.index_of(case.labels) >= 0
    for labels in (case.labels.masked_fill(numeric, -100), torch.full_like(case.labels, -100)):
        leaf = case.logits.clone().requires_grad_()
        out = Batch(case.vocabulary, leaf, labels, case.keys).objective(bound, leaf)
        require(not out.units, f"units() counts {out.units} without numeric targets")
        require(float(out.auxiliary.detach()) == 0.0, "the auxiliary is not 0 without targets")
        out.total.backward()
        require(bool(leaf.grad.isfinite().all()), "the gradient is not finite without targets")


LOSS_CHECKS: dict[str, Callable[[Loss], None]] = {
    "contract": _contract,
    "gradient": _gradient,
    "logits": _extremes,
    "units": _units,
    "micro-batches": _micro_batches,
    "separable": _separable,
    "deterministic": _deterministic,
    "no numeric targets": _no_targets,
}


def _bind(loss: Loss, n: int = 10) -> NumericLoss:
    return loss.bind(integers(n))


def _numeric(case: Batch, bound: NumericLoss) -> NumericTargets:
    targets = supervised_targets(bound, case.labels, case.keys)
    logits = case.logits[targets.row, targets.position][targets.index]  # [M, V]
    return targets.numeric(logits[:, bound.token_ids], logits.logsumexp(-1), slice(None))


def _require_finite(case: Batch, bound: NumericLoss, logits: Tensor, where: str = "") -> Tensor:
    value, found = gradient(lambda x: case.objective(bound, x).total, logits)
    require(bool(value.isfinite()), f"the value is {value.item()}{where}")
    require(bool(found.isfinite().all()), f"the gradient is not finite{where}")
    return value


def _close(found: Tensor, wanted: Tensor, otherwise: str, tolerance: float = 1e-9) -> None:
    found, wanted = found.double(), wanted.double()
    if not torch.allclose(found, wanted, rtol=tolerance, atol=tolerance):
        fail(f"{otherwise} (off by {float((found - wanted).abs().max().detach()):.2g})")
