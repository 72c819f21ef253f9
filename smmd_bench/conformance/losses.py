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
from ..objective.supervised import count_units, numeric_positions, supervised_targets
from .checks import Checks, UncheckedError, fail, require

LOSS_CHECKS = Checks()
OTHERS = 5
"""Tokens of a case's vocabulary that are not numeric."""


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

    def objective(self, bound: NumericLoss, logits: Tensor | None = None) -> ObjectiveOutput:
        """The objective of a bound loss, on these logits or others."""
        given = self.logits if logits is None else logits
        return numeric_objective(bound, given, self.labels, keys=self.keys)

    def rows(self, part: slice) -> Batch:
        """A micro-batch."""
        return Batch(self.vocabulary, self.logits[part], self.labels[part], self.keys[part])

    @property
    def ignored(self) -> Tensor:
        """[B, T] bool: where the label is -100."""
        return self.labels == -100


def make_batch(n: int = 10, rows: int = 4, length: int = 7) -> Batch:
    """Rows as training has them: an ignored prompt, then numbers of one to three tokens with other
    tokens between them, and padding after some."""
    generator = torch.Generator().manual_seed(0)
    vocabulary = integers(n)
    tokens = torch.arange(n + OTHERS)
    others = tokens[~torch.isin(tokens, vocabulary.token_ids)]
    labels = vocabulary.token_ids[torch.randint(n, (rows, length), generator=generator)]
    for row in range(rows):
        labels[row, : 1 + row % 2] = -100
        labels[row, 3 + row % 3] = others[row % len(others)]
        if row % 2:
            labels[row, length - 1] = -100
    shape = (rows, length, n + OTHERS)
    logits = 2 * torch.randn(shape, generator=generator, dtype=torch.float64)
    return Batch(vocabulary, logits, labels, 1000 + torch.arange(rows))


def gradient(function: Callable[[Tensor], Tensor], at: Tensor) -> tuple[Tensor, Tensor]:
    """(value, gradient) of a scalar function of logits."""
    leaf = at.detach().clone().requires_grad_()
    value = function(leaf)
    (found,) = torch.autograd.grad(value, leaf)
    return value.detach(), found


@LOSS_CHECKS.add("contract")
def _contract(loss: Loss) -> str:
    require(isinstance(loss, Loss), "it lacks an attribute or method of Loss")
    weight = loss.weight
    require(math.isfinite(weight) and weight >= 0, f"weight is {weight}, not a number >= 0")
    bound = _bind(loss)
    name = type(bound).__name__
    require(isinstance(bound, NumericLoss), f"bind returns a {name}, not a NumericLoss")
    trainable = [name for name, _ in bound.named_parameters()]
    require(not trainable, f"the module has trainable parameters: {', '.join(trainable)}")
    kind = "replaces cross-entropy" if loss.replaces_cross_entropy else "is added to it"
    return f"binds to ten digits; {kind}, weight {weight:g}"


@LOSS_CHECKS.add("gradient")
def _gradient(loss: Loss) -> str:
    """Total and auxiliary against central differences, in float64."""
    case, bound = make_batch(rows=2, length=6), _bind(loss)

    def outputs(logits: Tensor) -> tuple[Tensor, Tensor]:
        out = case.objective(bound, logits)
        return out.total, out.auxiliary

    try:
        gradcheck(outputs, (case.logits.clone().requires_grad_(),))
    except GradcheckError as error:
        difference = str(error).splitlines()[0].rstrip(",. ")
        fail(
            f"it differs from finite differences in float64 ({difference}); a straight-through "
            "gradient does so by design"
        )
    return f"that of finite differences in float64, over {case.logits.numel()} logits"


@LOSS_CHECKS.add("extreme logits")
def _extremes(loss: Loss) -> str:
    case = make_batch()
    equal = torch.zeros(case.logits.shape)  # [B, T, V] float32
    right = equal.scatter(-1, case.labels.clamp(min=0)[..., None], 200.0)
    named = {"equal": equal, "right and certain": right, "wrong and certain": right.roll(1, -1)}
    for name, logits in named.items():
        _require_finite(case, _bind(loss), logits, f" at {name} logits")
    return "value and gradient are finite in float32 at equal, right and wrong certain logits"


@LOSS_CHECKS.add("ignores -100")
def _ignored(loss: Loss) -> str:
    case, bound = make_batch(), _bind(loss)
    value, found = gradient(lambda x: case.objective(bound, x).total, case.logits)
    other = case.logits + 5 * case.ignored[..., None] * torch.randn_like(case.logits)
    _close(case.objective(bound, other).total, value, "logits at ignored positions matter")
    require(not bool(found[case.ignored].any()), "ignored positions have a gradient")
    return f"{int(case.ignored.sum())} ignored positions change nothing and have no gradient"


@LOSS_CHECKS.add("units")
def _units(loss: Loss) -> str:
    """Those that forward returns, and those that `units` counts without any logits."""
    case, bound = make_batch(), _bind(loss)
    numeric = _numeric(case, bound)
    total, units = bound(numeric)
    require(total.dim() == 0, f"forward returns a sum of shape {list(total.shape)}, not a scalar")
    counted = count_units(bound, case.labels)
    require(
        int(units) == counted,
        f"forward says {int(units)} units and units() says {counted} for the same positions",
    )
    return f"forward and units() agree: {counted} in {numeric.target.numel()} numeric positions"


@LOSS_CHECKS.add("micro-batches")
def _micro_batches(loss: Loss) -> str:
    """The sums over parts of a step that share its counts."""
    _split(make_batch(), _bind(loss))
    at = "at N = 10 and 1,000"
    try:
        bound = _bind(loss, 1000)
    except CellSkippedError as error:
        at = f"at N = 10 alone (at 1,000: {error})"
    else:
        _split(make_batch(1000), bound)
    return f"totals and gradients of 1 + 3 and of 2 + 2 rows add up to those of 4, {at}"


def _split(case: Batch, bound: NumericLoss) -> None:
    counts = int((~case.ignored).sum()), count_units(bound, case.labels)

    def total(logits: Tensor, part: slice) -> Tensor:
        rows = case.rows(part)
        return numeric_objective(bound, logits, rows.labels, *counts, rows.keys).total

    whole, wanted = gradient(lambda x: total(x, slice(None)), case.logits)
    for at in (1, 2):
        parts = [slice(0, at), slice(at, None)]
        found = [gradient(lambda x, p=p: total(x, p), case.logits[p]) for p in parts]  # type: ignore[misc]
        value = found[0][0] + found[1][0]
        _close(value, whole, f"the totals of {at} + {4 - at} rows do not add up to that of 4")
        parts_gradient = torch.cat([part for _, part in found])
        _close(parts_gradient, wanted, f"the gradients of {at} + {4 - at} rows differ from 4")


@LOSS_CHECKS.add("separable")
def _separable(loss: Loss) -> str:
    """A loss that says so is evaluated a few positions at a time."""
    case, bound = make_batch(), _bind(loss)
    if not bound.separable:
        return "not declared, so it is evaluated whole"
    positions = numeric_positions(bound, supervised_targets(case.labels, case.keys))
    whole = _numeric(case, bound)

    def part(p: slice) -> Tensor:
        return bound(positions.targets(whole.logits[p], whole.log_partition[p], p))[0]

    wanted = bound(whole)[0]
    for at in range(1, len(whole.target)):
        halves = part(slice(0, at)) + part(slice(at, None))
        _close(halves, wanted, "it is declared, but parts do not add up")
    return "declared, and the sums over parts of the positions add up"


@LOSS_CHECKS.add("deterministic")
def _deterministic(loss: Loss) -> str:
    """The same keys give the same noise, whatever torch's generator has drawn."""
    case = make_batch()
    first = case.objective(_bind(loss)).total
    torch.rand(3)
    require(
        bool(first == case.objective(_bind(loss)).total),
        "the same batch gives another value: draw noise by its keys, with gumbel and mixed of "
        "smmd_bench.contracts",
    )
    return "the same batch gives the same value, bit by bit"


@LOSS_CHECKS.add("no numeric targets")
def _no_targets(loss: Loss) -> str:
    """A batch without numbers, and one that is ignored altogether."""
    case, bound = make_batch(), _bind(loss)
    numeric = bound.vocabulary.index_of(case.labels) >= 0
    labels = {
        "numeric targets": case.labels.masked_fill(numeric, -100),
        "targets": torch.full_like(case.labels, -100),
    }
    for name, given in labels.items():
        leaf = case.logits.clone().requires_grad_()
        out = Batch(case.vocabulary, leaf, given, case.keys).objective(bound)
        require(not out.units, f"units() counts {out.units} without {name}")
        require(float(out.auxiliary.detach()) == 0.0, f"the auxiliary is not 0 without {name}")
        out.total.backward()
        require(bool(leaf.grad.isfinite().all()), f"the gradient is not finite without {name}")
    return "units() counts none, so forward is not called: the harness gives the zero itself"


@LOSS_CHECKS.add("half precision")
def _half_precision(loss: Loss) -> str:
    case, bound = make_batch(), _bind(loss)
    for dtype in (torch.bfloat16, torch.float16):
        half = case.logits.to(dtype)
        value = _require_finite(case, bound, half, f" in {dtype}")
        wide = case.objective(bound, half.float()).total
        _close(value, wide, f"in {dtype} the value differs from float32", 1e-4)
    return "bfloat16 and float16 logits give the value of float32"


@LOSS_CHECKS.add("padded vocabulary")
def _padded(loss: Loss) -> str:
    """Logits wider than the tokenizer."""
    case, bound = make_batch(), _bind(loss)
    pad = torch.full((*case.labels.shape, 3), -1e4, dtype=case.logits.dtype)
    out, wide = (case.objective(bound, x) for x in (case.logits, torch.cat([case.logits, pad], -1)))
    _close(wide.auxiliary, out.auxiliary, "more columns of logits change the auxiliary")
    _close(wide.cross_entropy, out.cross_entropy, "more columns change the cross-entropy")
    return f"{pad.shape[-1]} more columns than the {10 + OTHERS} tokens change nothing"


@LOSS_CHECKS.add("1,000 numeric tokens")
def _thousand(loss: Loss) -> str:
    """As a Llama-3-like tokenizer has them."""
    bound, case = _bind(loss, 1000), make_batch(1000)
    _require_finite(case, bound, case.logits.float())
    if not bool(bound.covers(torch.arange(1000)).any()) and loss.weight:
        raise UncheckedError("it acts on none of them")
    return "value and gradient are finite"


def _bind(loss: Loss, n: int = 10) -> NumericLoss:
    """The loss over 0..n-1. Raises CellSkippedError if it cannot apply to them."""
    return loss.bind(integers(n))


def _numeric(case: Batch, bound: NumericLoss) -> NumericTargets:
    """What the loss sees of a whole batch."""
    targets = supervised_targets(case.labels, case.keys)
    positions = numeric_positions(bound, targets)
    logits = case.logits[targets.row, targets.position][positions.index]  # [M, V]
    return positions.targets(logits[:, bound.token_ids], logits.logsumexp(-1), slice(None))


def _require_finite(case: Batch, bound: NumericLoss, logits: Tensor, where: str = "") -> Tensor:
    """The total at these logits, which must be finite, as must its gradient."""
    value, found = gradient(lambda x: case.objective(bound, x).total, logits)
    require(bool(value.isfinite()), f"the value is {value.item()}{where}")
    require(bool(found.isfinite().all()), f"the gradient is not finite{where}")
    return value


def _close(found: Tensor, wanted: Tensor, otherwise: str, tolerance: float = 1e-9) -> None:
    found, wanted = found.double(), wanted.double()
    if not torch.allclose(found, wanted, rtol=tolerance, atol=tolerance):
        fail(f"{otherwise} (off by {float((found - wanted).abs().max().detach()):.2g})")
