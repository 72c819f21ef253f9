"""What each loss charges for a wrong digit: the penalty against the predicted digit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from smmd_bench.contracts import Artefact, CellSkippedError, Run, UserError
from smmd_bench.publishing.style import GREY, WIDTH, folded, loss_label, loss_styles, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N, TARGET = 10, 3
"""V_num is the digits."""
SHARE = 0.9
ROWS, COLUMNS = 12, 3
"""Losses of a run drawn at most, and panels side by side."""
CAPTION = (
    f"Penalty at one position by the predicted digit, which has the probability {SHARE}, for the "
    f"target {TARGET} (dotted line): lambda times the auxiliary, or what stands in place of "
    "cross-entropy. Every panel has a scale of its own."
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
        if {*run.cells["loss"]} <= {"base"}:
            return "no cell trains with a loss"
        return None if find_spec("torch") else "torch is not installed"

    def build(self, run: Run) -> Artefact:
        """One panel a loss, cross-entropy in any case."""
        specs = [str(spec) for spec in run.cells["loss"].cat.categories if spec != "base"]
        data = penalties([*dict.fromkeys(["ce", *specs])][:ROWS])
        return Artefact(CAPTION, figure=_figure(data), data=data)


def penalties(specs: Sequence[str]) -> pd.DataFrame:
    """One row a predicted value of each loss that can be loaded and acts on digits."""
    parts = []
    for spec in specs:
        try:
            term, charged = _charge(spec)
        except (UserError, CellSkippedError):
            continue
        rounded = [float(f"{x:.9g}") for x in charged]  # further digits depend on the machine
        part = {"loss": spec, "term": term, "numeric_tokens": N, "target": TARGET}
        parts.append(pd.DataFrame({**part, "value": range(N), "penalty": rounded}))
    return pd.concat(parts, ignore_index=True)


def _charge(spec: str) -> tuple[str, list[float]]:
    """What the penalty is, and its value for each predicted digit."""
    import torch

    from smmd_bench.contracts import NoAuxiliary, NumericVocabulary
    from smmd_bench.objective.objective import numeric_objective
    from smmd_bench.plugin_system.registry import load_loss

    loss: Any = load_loss(spec)
    if noisy := bool(getattr(loss, "noise", 0)):
        loss = replace(loss, noise=0.0)
    bound = loss.bind(NumericVocabulary(torch.arange(N), torch.arange(N).double(), "integer"))
    p = torch.full((N, N), (1 - SHARE) / (N - 1), dtype=torch.float64).fill_diagonal_(SHARE)
    logits = p.log() - p.log().mean(-1, keepdim=True)  # mean 0: for DEL
    y = torch.tensor([[TARGET]])
    outputs = [numeric_objective(bound, x[None, None], y) for x in logits]
    if isinstance(bound, NoAuxiliary):
        return "cross-entropy", [float(output.total) for output in outputs]
    weight = 1.0 if bound.replaces_cross_entropy else bound.weight
    term = "in place of CE" if bound.replaces_cross_entropy else f"{weight:g} × auxiliary"
    return term + ", noise=0" * noisy, [weight * float(output.auxiliary) for output in outputs]


def _figure(data: pd.DataFrame) -> Figure:
    styles = loss_styles(data["loss"].unique())
    rows = -(-len(styles) // COLUMNS)
    figure = new_figure(WIDTH, 0.4 + 2.1 * rows)
    axes = [*figure.subplots(rows, COLUMNS, squeeze=False).flat]
    for axis, (loss, style) in zip(axes, styles.items(), strict=False):
        shown = data[data["loss"] == loss]
        axis.axvline(TARGET, color=GREY, linestyle=":", linewidth=1)
        axis.plot(shown["value"], shown["penalty"], **style.plotted(4))
        axis.set_title(f"{folded(loss_label(loss), 24)}\n({shown['term'].iloc[0]})")
        axis.set_ylim(min(0.0, shown["penalty"].min()), 1.15 * shown["penalty"].max() or 1.0)
        axis.set(xticks=range(N), xlabel="predicted digit")
    for axis in axes[len(styles) :]:
        axis.set_axis_off()
    return figure
