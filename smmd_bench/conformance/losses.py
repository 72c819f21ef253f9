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
    # A loss that takes the ids of V_num for its values is found out so.
    ids = torch.randperm(n + OTHERS, generator=torch.Generator().manual_seed(n))[:n]
    return NumericVocabulary(ids, torch.arange(n, dtype=torch.float64), "integer")


def make_batch(n: int = 10) -> tuple[Tensor, Tensor, Tensor]:
    """Make logits [4, 7, V], labels [4, 7] and keys [4]. A row is an ignored prompt, numbers of one
    to three tokens with others between, and padding."""
    generator = torch.Generator().manual_seed(0)
    numeric = integers(n).token_ids
    every = torch.arange(n + OTHERS)
    not_numeric = every[~torch.isin(every, numeric)]

    # Prompts and answers of several lengths, so that no check depends on equal rows.
    values = torch.randint(n, (4, 7), generator=generator)
    labels = numeric[values]
    for row, other in enumerate(not_numeric[:4]):
        prompt = 1 + row % 2
        between = 3 + row % 3
        labels[row, :prompt] = -100
        labels[row, between] = other
    labels[1::2, 6] = -100

    # In float64, so that finite differences are exact to many digits.
    shape = (4, 7, n + OTHERS)
    logits = torch.randn(shape, generator=generator, dtype=torch.float64)
    keys = 1000 + torch.arange(4)
    return 2 * logits, labels, keys


def _check_contract(loss: Loss) -> None:
    """It binds to ten digits and has no trainable parameters."""
    weight = loss.weight
    require(
        math.isfinite(weight) and weight >= 0, f"weight is {weight}, not a number >= 0"
    )
    bound = loss.bind(integers(10))
    name = type(bound).__name__
    require(isinstance(bound, NumericLoss), f"bind returns a {name}, not a NumericLoss")
    # The optimizer has the parameters of the model alone: others would never move.
    trainable = [name for name, _ in bound.named_parameters()]
    require(
        not trainable, f"the module has trainable parameters: {', '.join(trainable)}"
    )


def _check_gradient(loss: Loss) -> None:
    """The gradient is that of finite differences, and zero outside numeric positions."""
    # Finite differences take two passes for each logit: two rows are enough.
    logits, labels, keys = (part[:2] for part in make_batch())
    bound = loss.bind(integers(10))

    def outputs(logits: Tensor) -> tuple[Tensor, Tensor]:
        out = numeric_objective(bound, logits, labels, keys=keys)
        return out.total, out.auxiliary

    leaf = logits.clone().requires_grad_()
    try:
        # A loss that declares a stopped gradient differs from finite differences on purpose.
        if not bound.stops_gradient:
            gradcheck(outputs, (leaf,))
    except GradcheckError as error:
        reason = str(error).splitlines()[0].rstrip(",. ")
        raise ViolationError(
            f"it is not that of finite differences ({reason})"
        ) from error

    auxiliary = outputs(leaf)[1]
    # Cross-entropy has no auxiliary, and so no gradient of it.
    if auxiliary.requires_grad:
        (gradient,) = torch.autograd.grad(auxiliary, leaf)
        outside = gradient[integers(10).index_of(labels) < 0]
        require(
            not outside.any(), "the auxiliary has a gradient outside numeric positions"
        )


def _check_logits(loss: Loss) -> None:
    """Finite at equal, right and wrong certain logits, of 10 numeric tokens and of 1,000."""
    logits, labels, keys = make_batch()
    bound = loss.bind(integers(10))

    # At +200 against 0 the other probabilities underflow in float32: the logarithm of one is -inf.
    equal = torch.zeros(logits.shape)  # [B, T, V] float32
    right = equal.scatter(-1, labels.clamp(min=0)[..., None], 200.0)
    wrong = right.roll(1, -1)
    _require_finite(bound, equal, labels, keys, "at equal logits")
    _require_finite(bound, right, labels, keys, "at right logits")
    _require_finite(bound, wrong, labels, keys, "at wrong logits")

    try:
        many = loss.bind(integers(1000))
    except CellSkippedError:  # it says itself that it cannot apply
        return
    _require_finite(many, *make_batch(1000), "with 1,000 numeric tokens")


def _check_units(loss: Loss) -> None:
    """A scalar sum; forward, with logits, and units(), without, count alike."""
    logits, labels, keys = make_batch()
    bound = loss.bind(integers(10))
    returned: list[tuple[Tensor, Any]] = []

    def remember(module: Any, inputs: Any, output: tuple[Tensor, Any]) -> None:
        returned.append(output)

    # The objective itself does not pass on what forward returns.
    bound.register_forward_hook(remember)
    numeric_objective(bound, logits, labels, keys=keys)

    # A step divides by what units() counts before it has any logits.
    counted = count_units(bound, labels)
    for total, units in returned:
        shape = list(total.shape)
        require(not shape, f"forward returns a sum of shape {shape}")
        number = int(units)
        require(number == counted, f"forward says {number} units and units() {counted}")


def _check_micro_batches(loss: Loss) -> None:
    """The micro-batches of a step add up to the whole, in value and gradient."""
    logits, labels, keys = make_batch()
    bound = loss.bind(integers(10))
    leaf = logits.clone().requires_grad_()

    # Every micro-batch divides by the counts of the whole step.
    tokens = int((labels != -100).sum())
    units = count_units(bound, labels)

    def total(rows: slice) -> Tensor:
        out = numeric_objective(
            bound, leaf[rows], labels[rows], tokens, units, keys[rows]
        )
        return out.total

    _require_same(
        total(slice(0, 1)) + total(slice(1, None)),
        total(slice(None)),
        leaf,
        "1 + 3 rows is not that of 4: draw noise by its keys",
    )


def _check_head_passes(loss: Loss) -> None:
    """The passes over the output head give the same, also where it is declared separable."""
    logits, labels, keys = make_batch()
    bound = loss.bind(integers(10))
    targets = supervised_targets(bound, labels, keys)
    # Through a head that is the identity, hidden states are logits.
    hidden = logits[targets.row, targets.position].requires_grad_()  # [T, V]
    head = OutputHead(
        torch.eye(hidden.shape[1], dtype=hidden.dtype, requires_grad=True)
    )

    at_once = logits_objective(bound, hidden, targets)
    # Chunks of one token, the smallest that there are.
    one_by_one = hidden_objective(
        bound, hidden, head, targets, chunk_elements=hidden.shape[1]
    )
    _require_same(
        one_by_one.total,
        at_once.total,
        hidden,
        "one token after the other is not that of all: draw noise by its keys",
    )


def _check_no_targets(loss: Loss) -> None:
    """A batch without numbers has no unit and a finite gradient."""
    logits, labels, keys = make_batch()
    bound = loss.bind(integers(10))
    leaf = logits.requires_grad_()
    is_numeric = bound.vocabulary.index_of(labels) >= 0
    labels[is_numeric] = -100  # ignored, as a prompt is
    out = numeric_objective(bound, leaf, labels, keys=keys)
    require(not out.units, f"units() counts {out.units} without numeric targets")
    require(
        float(out.auxiliary.detach()) == 0.0, "the auxiliary is not 0 without targets"
    )

    # 0 / 0 units would make it nan.
    (gradient,) = torch.autograd.grad(out.total, leaf)
    require(gradient.isfinite().all(), "the gradient is not finite without targets")


LOSS_CHECKS: dict[str, Callable[[Loss], None]] = {
    "contract": _check_contract,
    "gradient": _check_gradient,
    "logits": _check_logits,
    "units": _check_units,
    "micro-batches": _check_micro_batches,
    "head passes": _check_head_passes,
    "no numeric targets": _check_no_targets,
}


def _require_finite(
    bound: NumericLoss, logits: Tensor, labels: Tensor, keys: Tensor, where: str
) -> None:
    leaf = logits.clone().requires_grad_()
    value = numeric_objective(bound, leaf, labels, keys=keys).total
    require(value.isfinite(), f"the value is {value.item()} {where}")
    (gradient,) = torch.autograd.grad(value, leaf)
    require(gradient.isfinite().all(), f"the gradient is not finite {where}")


def _require_same(value: Tensor, wanted: Tensor, leaf: Tensor, otherwise: str) -> None:
    """Raise ViolationError unless two scalars are the same, and their gradients, too."""
    (gradient,) = torch.autograd.grad(value, leaf)
    (wanted_gradient,) = torch.autograd.grad(wanted, leaf)
    _require_close(value, wanted, f"the value of {otherwise}")
    _require_close(gradient, wanted_gradient, f"the gradient of {otherwise}")


def _require_close(values: Tensor, wanted: Tensor, otherwise: str) -> None:
    # In float64, sums in another order differ by less.
    is_close = torch.allclose(values, wanted, rtol=1e-9, atol=1e-9)
    require(is_close, f"{otherwise} (off by {(values - wanted).abs().max():.2g})")
