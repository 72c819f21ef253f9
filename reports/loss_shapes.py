"""What each loss charges for a wrong digit: the penalty against the predicted value, target fixed.

No run is needed: `figure(["ce", "ntl", "smmd"])`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from smmd_bench.contracts import Artefact, CellSkippedError, Run, UserError
from smmd_bench.publishing.style import (
    GREY,
    WIDTH,
    LossStyle,
    folded,
    loss_label,
    loss_styles,
    new_figure,
)

from ._panels import say

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TARGETS = {10: 3, 1000: 300}
"""The target by N; V_num is the integers from 0 to N - 1."""
SHARE = 0.9
NEAR = 10
"""How far the axis of N = 1000 is linear to either side of the target."""
MARKED = {*range(NEAR + 1), 15, 20, 30, 50, 100, 200, 300, 500, 699}
"""Distances from the target with a marker at N = 1000."""
ROWS = 12
"""Losses of a run drawn at most; their rows get lower where they would not fit on a page."""
CAPTION = (
    f"Penalty at one position by the predicted value, which has the probability {SHARE}, for a "
    "fixed target (dotted line): lambda times the auxiliary, or what stands in place of "
    "cross-entropy. V_num is the integers from 0 to N − 1. Every panel has a scale of its own."
)


@dataclass(frozen=True)
class LossShapes:
    """The penalty of every loss of the run as a function of the predicted value."""

    name: ClassVar[str] = "loss_shapes"
    title: ClassVar[str] = "What each loss charges for a wrong digit (target fixed)"
    paper: ClassVar[str] = "not in the paper"

    def skip(self, run: Run) -> str | None:
        """Without a loss there is nothing to draw, and without torch no loss can be evaluated."""
        if "predictions" in run.manifest:
            return "the completions were made elsewhere: their labels are no losses"
        if not _specs(run):
            return "no cell trains with a loss"
        return None if find_spec("torch") else "torch is not installed"

    def build(self, run: Run) -> Artefact:
        """One row of panels a loss."""
        data = penalties(_specs(run)[:ROWS])
        return Artefact(CAPTION, figure=_figure(data), data=data)


def figure(specs: Sequence[str]) -> Figure:
    """The figure of these losses, without a run; those that cannot be loaded are left out."""
    return _figure(penalties(specs))


def penalties(specs: Sequence[str]) -> pd.DataFrame:
    """One row a loss, N (`numeric_tokens`) and predicted value: term, target, penalty.

    A loss that does not act at an N, or cannot be loaded, has no rows there.
    """
    parts = []
    for spec, (n, target) in product(specs, TARGETS.items()):
        try:
            term, charged = _charge(spec, n, target)
        except (UserError, CellSkippedError):
            continue
        if charged:
            rounded = [float(f"{x:.9g}") for x in charged]  # further digits depend on the machine
            part = {"loss": spec, "term": term, "numeric_tokens": n, "target": target}
            parts.append(pd.DataFrame({**part, "value": _values(n, target), "penalty": rounded}))
    frame = pd.concat(parts, ignore_index=True)
    frame["loss"] = pd.Categorical(frame["loss"], categories=[*frame["loss"].unique()])
    return frame


def _values(n: int, target: int) -> list[int]:
    """The predicted values at which a penalty is evaluated: of many numbers every fifth far off."""
    return [v for v in range(n) if abs(v - target) <= 30 or v % 5 == 0 or v == n - 1]


def _specs(run: Run) -> list[str]:
    """The losses of the run, with cross-entropy in any case."""
    specs = [str(spec) for spec in run.cells["loss"].cat.categories if spec != "base"]
    return list(dict.fromkeys(["ce", *specs])) if specs else []


def _charge(spec: str, n: int, target: int) -> tuple[str, list[float]]:
    """What the penalty is, and its value for each predicted value (none: the loss does not act)."""
    import torch
    from threadpoolctl import threadpool_limits

    from smmd_bench.contracts import NoAuxiliary, NumericTargets, NumericVocabulary
    from smmd_bench.plugin_system.registry import load_loss

    loss: Any = load_loss(spec)
    noisy = bool(getattr(loss, "noise", 0))
    values = torch.arange(n)
    vocabulary = NumericVocabulary(values, values.double(), "integer")
    bound = (replace(loss, noise=0.0) if noisy else loss).bind(vocabulary)
    p = torch.full((n, n), (1 - SHARE) / (n - 1), dtype=torch.float64).fill_diagonal_(SHARE)
    logits = (p.log() - p.log().mean(-1, keepdim=True))[_values(n, target)]  # mean 0: for DEL
    y, zero, one = torch.tensor([target]), torch.zeros(1, dtype=torch.int64), torch.ones(1)
    places = dict.fromkeys(("row", "position", "key", "number"), zero)
    places |= {"target": y, "place": one.double(), "whole": one.bool()}
    if isinstance(bound, NoAuxiliary):
        how = {"reduction": "none", "label_smoothing": bound.label_smoothing}
        charged = torch.nn.functional.cross_entropy(logits, y.expand(len(logits)), **how)
        return "cross-entropy", charged.tolist()
    weight = 1.0 if bound.replaces_cross_entropy else bound.weight
    term = "in place of CE" if bound.replaces_cross_entropy else f"{weight:g} × auxiliary"
    term += ", noise=0" if noisy else ""
    if not bound.covers(y).all():
        return term, []
    found = []
    with torch.no_grad(), threadpool_limits(1):  # N small products: threads would only wait
        for x in logits:
            numeric = NumericTargets(logits=x[None], log_partition=x.logsumexp(0)[None], **places)
            summed, units = bound(numeric)
            found.append(weight * float(summed) / max(units, 1))
    return term, found


def _figure(data: pd.DataFrame) -> Figure:
    losses = list(data["loss"].cat.categories)
    figure = new_figure(WIDTH, 0.75 + min(1.75 * len(losses), 11))
    axes = figure.subplots(len(losses), 2, sharex="col", squeeze=False, width_ratios=[1, 1.8])
    for row, (loss, style) in zip(axes, loss_styles(losses).items(), strict=True):
        own = data[data["loss"] == loss]
        term = own["term"].iloc[0].replace(", ", ",\n")
        label = f"{folded(loss_label(loss), 20)}\n({term})"
        row[0].set_ylabel(label, rotation=0, ha="right", va="center", labelpad=8)
        for axis, n in zip(row, TARGETS, strict=True):
            shown = own[own["numeric_tokens"] == n]
            if len(shown):
                _curve(axis, shown, style)
                continue
            digits = axis is row[1] and len(own) > 0
            say(axis, "does not act on\nmulti-digit tokens" if digits else "does not act here")
            axis.set_yticks([])
            axis.grid(visible=False)
    for axis, (n, target) in zip(axes[0], TARGETS.items(), strict=True):
        axis.set_title(f"N = {n}, target {target}")
    (small_n, _), (n, target) = TARGETS.items()
    axes[-1][0].set(xticks=range(small_n), xlabel="predicted value")
    _scale_distances(axes[-1][1], n, target)
    return figure


def _curve(axis: Axes, shown: pd.DataFrame, style: LossStyle) -> None:
    """The penalty of one loss at one N: by value, or at N = 1000 by distance from the target."""
    target, large = int(shown["target"].iloc[0]), len(shown) > min(TARGETS)
    x = shown["value"] - target * large
    marked = [at for at, each in enumerate(x) if not large or abs(each) in MARKED]
    axis.axvline(target * (not large), color=GREY, linestyle=":", linewidth=1)
    axis.plot(x, shown["penalty"], **style.plotted(4, markevery=marked))
    axis.set_ylim(min(0.0, shown["penalty"].min()), 1.15 * shown["penalty"].max() or 1.0)


def _scale_distances(axis: Axes, n: int, target: int) -> None:
    """Distances from the target: linear up to NEAR to either side, logarithmic beyond."""
    axis.set_xscale("symlog", linthresh=NEAR, linscale=1)
    axis.set_xlim(-1.12 * target, 1.12 * (n - 1 - target))
    ends = np.array([-target, -30, -NEAR, -5, 0, 5, NEAR, 30, 100, n - 1 - target])
    axis.set_xticks(ends, [f"{end:+d}".replace("-", "−") if end else "0" for end in ends])
    axis.set_xticks([], minor=True)
    axis.set_xlabel("predicted value − target")
