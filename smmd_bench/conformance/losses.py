"""The checks of a loss, through the same objective that training uses."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.gradcheck import GradcheckError, gradcheck

from ..contracts import Loss, NumericLoss, NumericVocabulary
from ..errors import CellSkippedError
from ..objective.objective import hidden_objective, logits_objective, numeric_objective
from ..objective.output_head import OutputHead
from ..objective.supervised import count_units, supervised_targets
from .checks import ViolationError, require

OTHERS = 5  # tokens of a case's vocabulary that are not numeric


def integers(n: int) -> NumericVocabulary:
    """V_num of the values 0..n-1, with token ids in another order than the values."""
    ids = torch.randperm(n + OTHERS, generator=torch.Generator().manual_seed(n))[:n]
    return NumericVocabulary(ids, torch.arange(n, dtype=torch.float64), "integer")


def make_batch(n: int = 10) -> tuple[Tensor, Tensor, Tensor]:
    """Logits [4, 7, V], labels [4, 7] and keys [4]. A row is an ignored prompt, numbers of one to
    three tokens with others between, and padding."""
    generator = torch.Generator().manual_seed(0)
    ids, tokens = integers(n).token_ids, torch.arange(n + OTHERS)
    others = tokens[~torch.isin(tokens, ids)]
    labels = ids[torch.randint(n, (4, 7), generator=generator)]
    for row in range(4):
        labels[row, : 1 + row % 2] = -100
        labels[row, 3 + row % 3] = others[row]
    labels[1::2, 6] = -100
    logits = 2 * torch.randn((4, 7, n + OTHERS), generator=generator, dtype=torch.float64)
    return logits, labels, 1000 + torch.arange(4)


def _contract(loss: Loss) -> None:
    """It binds to ten digits and has no trainable parameters."""
    weight = loss.weight
    require(math.isfinite(weight) and weight >= 0, f"weight is {weight}, not a number >= 0")
    bound = loss.bind(integers(10))
    name = type(bound).__name__
    require(isinstance(bound, NumericLoss), f"bind returns a {name}, not a NumericLoss")
    trainable = [name for name, _ in bound.named_parameters()]
    require(not trainable, f"the module has trainable parameters: {', '.join(trainable)}")


def _gradient(loss: Loss) -> None:
    """The gradient is that of finite differences, and zero outside numeric positions."""
    logits, labels, keys = (part[:2] for part in make_batch())
    bound = loss.bind(integers(10))

    def outputs(logits: Tensor) -> tuple[Tensor, Tensor]:
        out = numeric_objective(bound, logits, labels, keys=keys)
        return out.total, out.auxiliary

    leaf = logits.clone().requires_grad_()
    try:
        if not bound.stops_gradient:
            gradcheck(outputs, (leaf,))
    except GradcheckError as error:
        said = str(error).splitlines()[0].rstrip(",. ")
        raise ViolationError(f"it is not that of finite differences ({said})") from error
    auxiliary = outputs(leaf)[1]
    if auxiliary.requires_grad:
        (found,) = torch.autograd.grad(auxiliary, leaf)
        outside = found[integers(10).index_of(labels) < 0]
        require(not outside.any(), "the auxiliary has a gradient outside numeric positions")


def _logits(loss: Loss) -> None:
    """Finite at equal, right and wrong certain logits, of 10 numeric tokens and of 1,000."""
    logits, labels, keys = make_batch()
    equal = torch.zeros(logits.shape)  # [B, T, V] float32
    right = equal.scatter(-1, labels.clamp(min=0)[..., None], 200.0)
    for name, case in {"equal": equal, "right": right, "wrong": right.roll(1, -1)}.items():
        _require_finite(loss.bind(integers(10)), case, labels, keys, f"at {name} logits")
    try:
        bound = loss.bind(integers(1000))
    except CellSkippedError:
        return
    _require_finite(bound, *make_batch(1000), "with 1,000 numeric tokens")


def _units(loss: Loss) -> None:
    """A scalar sum; forward, with logits, and units(), without, count alike."""
    bound, (logits, labels, keys) = loss.bind(integers(10)), make_batch()
    returned: list[tuple[Tensor, Any]] = []
    bound.register_forward_hook(lambda *call: returned.append(call[2]))
    numeric_objective(bound, logits, labels, keys=keys)
    counted = count_units(bound, labels)
    for total, units in returned:
        require(total.dim() == 0, f"forward returns a sum of shape {list(total.shape)}")
        require(int(units) == counted, f"forward says {int(units)} units and units() {counted}")


def _micro_batches(loss: Loss) -> None:
    """The micro-batches of a step add up to the whole, in value and gradient."""
    logits, labels, keys = make_batch()
    bound, leaf = loss.bind(integers(10)), logits.clone().requires_grad_()
    counts = int((labels != -100).sum()), count_units(bound, labels)

    def total(part: slice) -> Tensor:
        return numeric_objective(bound, leaf[part], labels[part], *counts, keys[part]).total

    whole, parts = total(slice(None)), total(slice(0, 1)) + total(slice(1, None))
    _require_same(parts, whole, leaf, "1 + 3 rows is not that of 4: draw noise by its keys")


def _head_passes(loss: Loss) -> None:
    """The passes over the output head give the same, also where it is declared separable."""
    logits, labels, keys = make_batch()
    bound = loss.bind(integers(10))
    targets = supervised_targets(bound, labels, keys)
    hidden = logits[targets.row, targets.position].requires_grad_()  # [T, V]
    head = OutputHead(torch.eye(hidden.shape[1], dtype=hidden.dtype, requires_grad=True))
    whole = logits_objective(bound, hidden, targets).total
    parts = hidden_objective(bound, hidden, head, targets, chunk_elements=hidden.shape[1]).total
    _require_same(
        parts, whole, hidden, "one token after the other is not that of all: draw noise by its keys"
    )


def _no_targets(loss: Loss) -> None:
    """A batch without numbers has no unit and a finite gradient."""
    logits, labels, keys = make_batch()
    bound, leaf = loss.bind(integers(10)), logits.requires_grad_()
    labels = labels.masked_fill(bound.vocabulary.index_of(labels) >= 0, -100)
    out = numeric_objective(bound, leaf, labels, keys=keys)
    require(not out.units, f"units() counts {out.units} without numeric targets")
    require(float(out.auxiliary.detach()) == 0.0, "the auxiliary is not 0 without targets")
    (found,) = torch.autograd.grad(out.total, leaf)
    require(bool(found.isfinite().all()), "the gradient is not finite without targets")


LOSS_CHECKS: dict[str, Callable[[Loss], None]] = {
    "contract": _contract,
    "gradient": _gradient,
    "logits": _logits,
    "units": _units,
    "micro-batches": _micro_batches,
    "head passes": _head_passes,
    "no numeric targets": _no_targets,
}


def _require_finite(
    bound: NumericLoss, logits: Tensor, labels: Tensor, keys: Tensor, where: str
) -> None:
    leaf = logits.clone().requires_grad_()
    value = numeric_objective(bound, leaf, labels, keys=keys).total
    require(bool(value.isfinite()), f"the value is {value.item()} {where}")
    (found,) = torch.autograd.grad(value, leaf)
    require(bool(found.isfinite().all()), f"the gradient is not finite {where}")


def _require_same(found: Tensor, wanted: Tensor, leaf: Tensor, otherwise: str) -> None:
    """Of two scalars, value and gradient."""
    pairs = [(value, torch.autograd.grad(value, leaf)[0]) for value in (found, wanted)]
    for what, one, other in zip(("value", "gradient"), *pairs, strict=True):
        same = torch.allclose(one, other, rtol=1e-9, atol=1e-9)
        require(same, f"the {what} of {otherwise} (off by {(one - other).abs().max():.2g})")
