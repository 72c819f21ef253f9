"""The checks of a loss, through the same objective that training uses."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.autograd.gradcheck import GradcheckError, gradcheck

from ..contracts import Loss, NumericLoss, NumericTargets
from ..errors import CellSkippedError
from ..objective.objective import count_units, numeric_objective
from ..objective.supervised import numeric_positions, supervised_targets
from .checks import Finding, UncheckedError, checked, require
from .loss_cases import OTHERS, Batch, batch, bind, gradient
from .loss_cost import cost

_DTYPES = (torch.bfloat16, torch.float16)


def loss_findings(loss: Loss, *, timed: bool = True) -> list[Finding]:
    """Everything that is checked of a loss, and where it is `timed` its cost, no check."""
    suite = _Suite(loss)
    checks: dict[str, Callable[[], str]] = {
        "contract": suite.contract,
        "gradient": suite.gradient,
        "extreme logits": suite.extremes,
        "ignores -100": suite.ignored,
        "units": suite.units,
        "micro-batches": suite.micro_batches,
        "separable": suite.separable,
        "deterministic": suite.deterministic,
        "no numeric targets": suite.no_targets,
        "half precision": suite.half_precision,
        "padded vocabulary": suite.padded,
        "1,000 numeric tokens": suite.thousand,
    }
    if timed:
        checks["cost"] = lambda: cost(loss)
    return [checked(name, function) for name, function in checks.items()]


@dataclass(frozen=True)
class _Suite:
    loss: Loss

    def contract(self) -> str:
        """The attributes of `Loss`, and what `bind` returns."""
        require(isinstance(self.loss, Loss), "it lacks an attribute or method of Loss")
        weight = self.loss.weight
        require(math.isfinite(weight) and weight >= 0, f"weight is {weight}, not a number >= 0")
        bound = bind(self.loss)
        require(
            isinstance(bound, NumericLoss),
            f"bind returns a {type(bound).__name__}, not a NumericLoss",
        )
        trainable = [name for name, _ in bound.named_parameters()]
        require(not trainable, f"the module has trainable parameters: {', '.join(trainable)}")
        kind = "replaces cross-entropy" if self.loss.replaces_cross_entropy else "is added to it"
        return f"binds to ten digits; {kind}, weight {weight:g}"

    def gradient(self) -> str:
        """Total and auxiliary against central differences, in float64."""
        case, bound = batch(rows=2, length=6), bind(self.loss)

        def outputs(logits: Tensor) -> tuple[Tensor, Tensor]:
            out = case.objective(bound, logits)
            return out.total, out.auxiliary

        try:
            gradcheck(outputs, (case.logits.clone().requires_grad_(),))
        except GradcheckError as error:
            difference = str(error).splitlines()[0].rstrip(",. ")
            require(
                False,
                f"it is not that of finite differences in float64 ({difference}); a "
                "straight-through gradient is not, by design",
            )
        return f"that of finite differences in float64, over {case.logits.numel()} logits"

    def extremes(self) -> str:
        """Equal logits, and logits that are certain, of the target or of another token."""
        case, bound = batch(), bind(self.loss)
        for name, logits in _extreme_logits(case).items():
            value, found = gradient(lambda x: case.objective(bound, x).total, logits)
            require(bool(value.isfinite()), f"the value is {value.item()} at {name} logits")
            require(bool(found.isfinite().all()), f"the gradient is not finite at {name} logits")
        return "value and gradient are finite in float32 at equal, right and wrong certain logits"

    def ignored(self) -> str:
        """Other logits under ignored labels, and the gradient there."""
        case, bound = batch(), bind(self.loss)
        value, found = gradient(lambda x: case.objective(bound, x).total, case.logits)
        other = case.logits + 5 * case.ignored[..., None] * torch.randn_like(case.logits)
        _close(case.objective(bound, other).total, value, "logits at ignored positions matter")
        require(not bool(found[case.ignored].any()), "ignored positions have a gradient")
        return f"{int(case.ignored.sum())} ignored positions change nothing and have no gradient"

    def units(self) -> str:
        """Those that forward returns, and those that `units` counts without any logits."""
        case, bound = batch(), bind(self.loss)
        numeric = _numeric(case, bound)
        total, units = bound(numeric)
        require(total.dim() == 0, f"forward returns a sum of shape {list(total.shape)}: no scalar")
        counted = count_units(bound, case.labels)
        require(
            int(units) == counted,
            f"forward says {int(units)} units and units() says {counted} of the same positions",
        )
        return f"forward and units() agree: {counted} in {numeric.target.numel()} numeric positions"

    def micro_batches(self) -> str:
        """The sums over parts of a step that share its counts."""
        self._split(batch(), bind(self.loss))
        at = "at N = 10 and 1,000"
        try:
            bound = bind(self.loss, 1000)
        except CellSkippedError as error:
            at = f"at N = 10 alone (at 1,000: {error})"
        else:
            self._split(batch(1000), bound)
        return f"totals and gradients of 1 + 3 and of 2 + 2 rows add up to those of 4, {at}"

    def _split(self, case: Batch, bound: NumericLoss) -> None:
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
            _close(
                torch.cat([part for _, part in found]),
                wanted,
                f"the gradients of {at} + {4 - at} rows are not those of 4",
            )

    def separable(self) -> str:
        """A loss that says so is evaluated a few positions at a time."""
        case, bound = batch(), bind(self.loss)
        if not bound.separable:
            return "not declared, so it is evaluated whole"
        targets = supervised_targets(case.labels, case.keys)
        positions = numeric_positions(bound, targets)
        whole = _numeric(case, bound)

        def part(p: slice) -> Tensor:
            return bound(positions.targets(whole.logits[p], whole.log_partition[p], p))[0]

        wanted = bound(whole)[0]
        for at in range(1, len(whole.target)):
            halves = part(slice(0, at)) + part(slice(at, None))
            _close(halves, wanted, "it is declared, but parts do not add up")
        return "declared, and the sums over parts of the positions add up"

    def deterministic(self) -> str:
        """The same keys give the same noise, whatever torch's generator has drawn."""
        case, bound = batch(), bind(self.loss)
        first = case.objective(bound).total
        torch.rand(3)
        again = case.objective(bind(self.loss)).total
        require(
            bool(first == again),
            "the same batch gives another value: key noise with smmd_bench.contracts.keyed_noise",
        )
        return "the same batch gives the same value, bit by bit"

    def no_targets(self) -> str:
        """A batch without numbers, and one that is ignored altogether."""
        case, bound = batch(), bind(self.loss)
        numeric = bound.vocabulary.index_of(case.labels) >= 0
        empty = Batch(
            case.vocabulary, case.logits, case.labels.masked_fill(numeric, -100), case.keys
        )
        nothing = Batch(case.vocabulary, case.logits, case.labels.fill_(-100), case.keys)
        for name, one in (("numeric targets", empty), ("targets", nothing)):
            leaf = one.logits.clone().requires_grad_()
            out = one.objective(bound, leaf)
            require(not out.units, f"units() counts {out.units} without {name}")
            require(float(out.auxiliary.detach()) == 0.0, f"the auxiliary is not 0 without {name}")
            out.total.backward()
            require(bool(leaf.grad.isfinite().all()), f"the gradient is not finite without {name}")
        return "units() counts none, so forward is not called: the harness gives the zero itself"

    def half_precision(self) -> str:
        """bfloat16 and float16 logits against the same numbers in float32."""
        case, bound = batch(), bind(self.loss)
        for dtype in _DTYPES:
            half = case.logits.to(dtype)
            value, found = gradient(lambda x: case.objective(bound, x).total, half)
            wide = case.objective(bound, half.float()).total
            _close(value, wide, f"in {dtype} the value is not that of float32", 1e-4)
            require(bool(found.isfinite().all()), f"the gradient is not finite in {dtype}")
        return "bfloat16 and float16 logits give the value of float32"

    def padded(self) -> str:
        """Logits wider than the tokenizer, with nothing in what is wider."""
        case, bound = batch(), bind(self.loss)
        pad = torch.full((*case.labels.shape, 3), -1e4, dtype=case.logits.dtype)
        out, wide = (
            case.objective(bound, x) for x in (case.logits, torch.cat([case.logits, pad], -1))
        )
        _close(wide.auxiliary, out.auxiliary, "more columns of logits change the auxiliary")
        _close(wide.cross_entropy, out.cross_entropy, "more columns change the cross-entropy")
        return f"{pad.shape[-1]} more columns than the {10 + OTHERS} tokens change nothing"

    def thousand(self) -> str:
        """Over the numeric tokens of a Llama-3-like tokenizer."""
        bound, case = bind(self.loss, 1000), batch(1000)
        value, found = gradient(lambda x: case.objective(bound, x).total, case.logits.float())
        if not bool(bound.covers(torch.arange(1000)).any()) and self.loss.weight:
            raise UncheckedError("it acts on none of them")
        require(bool(value.isfinite()), f"the value is {value.item()}")
        require(bool(found.isfinite().all()), "the gradient is not finite")
        return "value and gradient are finite"


def _numeric(case: Batch, bound: NumericLoss) -> NumericTargets:
    """What the loss sees of a whole batch."""
    targets = supervised_targets(case.labels, case.keys)
    positions = numeric_positions(bound, targets)
    logits = case.logits[targets.row, targets.position][positions.index]  # [M, V]
    return positions.targets(logits[:, bound.token_ids], logits.logsumexp(-1), slice(None))


def _extreme_logits(case: Batch) -> dict[str, Tensor]:
    """In float32: [B, T, V] each."""
    equal = torch.zeros(case.logits.shape)
    label = case.labels.clamp(min=0)[..., None]
    right = equal.scatter(-1, label, 200.0)
    return {"equal": equal, "right and certain": right, "wrong and certain": right.roll(1, -1)}


def _close(found: Tensor, wanted: Tensor, otherwise: str, tolerance: float = 1e-9) -> None:
    same = torch.allclose(found.double(), wanted.double(), rtol=tolerance, atol=tolerance)
    if not same:
        gap = float((found.double() - wanted.double()).abs().max().detach())
        require(False, f"{otherwise} (off by {gap:.2g})")
