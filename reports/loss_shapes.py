"""What each loss of the run charges for a wrong digit: the penalty by the predicted digit.

`scripts/draw_docs.py` draws the same of all losses, and beside it that of tokens up to 999.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pandas as pd

from smmd_bench.contracts import (
    Artefact,
    CellSkippedError,
    ReportSkippedError,
    Run,
    UserError,
)
from smmd_bench.plugin_system.registry import load_loss
from smmd_bench.publishing.style import GREY, LossStyle, folded, loss_label, loss_styles
from smmd_bench.results.baselines import REFERENCE

from ._panels import make_grid
from ._results import select_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE, TARGET = 10, 3
"""N, the number of numeric tokens, here the digits; and which of them is right."""
SHARE = 0.9
SHOWN = (
    f"The target is {TARGET} (dotted line). The prediction gives {SHARE} to one digit and "
    f"spreads {1 - SHARE:.1f} evenly over the others. The penalty is λ times the auxiliary, or "
    "what stands in place of cross-entropy. Scales differ between panels. Where a part counts as "
    "constant, the gradient is not the slope."
)


@dataclass(frozen=True)
class LossShapes:
    """The penalty of each loss of the run by the predicted digit, beside cross-entropy's."""

    name = "loss_shapes"
    title = "What each loss charges for a wrong digit"
    paper = "not in the paper"
    order = 140

    def build(self, run: Run) -> Artefact:
        """One panel a loss; a caption that names those that have none."""
        if "predictions" in run.manifest:
            raise ReportSkippedError(
                "the completions were made elsewhere: their labels are no losses"
            )
        specs = _list_losses(run)
        if len(specs) < 2:
            raise ReportSkippedError("no cell trains with a loss beside cross-entropy")
        # torch evaluates the losses.
        if find_spec("torch") is None:
            raise ReportSkippedError("torch is not installed")

        data = find_penalties(specs)
        missing = sorted({*specs} - {*data["loss"]})
        caption = SHOWN
        if missing:
            caption += f" Not drawn, as no one setting is given: {', '.join(missing)}."
        return Artefact(caption, figure=_draw_grid(data), data=data)


def _list_losses(run: Run) -> list[str]:
    """The losses that the run trains with, cross-entropy first in any case."""
    specs = [REFERENCE, *map(str, run.cells["loss"].cat.categories)]
    return [spec for spec in dict.fromkeys(specs) if spec != "base"]


def find_penalties(
    specs: Sequence[str], size: int = SIZE, target: int = TARGET
) -> pd.DataFrame:
    """One row a loss and predicted value, of the values below `size`.

    A loss that has no one setting, such as a tuned one, has no rows.
    """
    parts = []
    for spec in specs:
        with suppress(UserError, CellSkippedError):
            parts.append(_charge(spec, size, target))
    # Further digits depend on the machine.
    return pd.concat(parts, ignore_index=True).round(9)


def _charge(spec: str, size: int, target: int) -> pd.DataFrame:
    """The rows of a loss; `term` says what its penalty is."""
    # All other reports are made without torch.
    import torch

    from smmd_bench.contracts import NumericVocabulary
    from smmd_bench.objective.objective import numeric_objective

    loss: Any = load_loss(spec)
    notes = []
    # A curve of one draw of noise would say little; NTIL's is drawn without.
    if getattr(loss, "noise", 0):
        notes.append("noise=0")
        loss = replace(loss, noise=0.0)
    values = torch.arange(size)
    bound = loss.bind(NumericVocabulary(values, values.double(), "integer"))
    if bound.stops_gradient:
        notes.append("part constant")

    # Row i predicts the value i. DEL alone depends on the mean of the logits: here it is 0.
    p = torch.full((size, size), (1 - SHARE) / (size - 1), dtype=torch.float64)
    logits = p.fill_diagonal_(SHARE).log()
    logits -= logits.mean(-1, keepdim=True)
    label = torch.tensor([[target]])

    # One at a time, as the objective gives the sum over all positions.
    outputs = [numeric_objective(bound, row, label) for row in logits[:, None, None]]

    kind = "in place of CE"
    penalties = [output.total for output in outputs]
    if not outputs[0].units:
        # It has no auxiliary, or does not act on such tokens.
        kind = "cross-entropy"
    # What is added to cross-entropy is drawn without it: DEL would not be seen beside it.
    elif not bound.replaces_cross_entropy:
        kind = f"{bound.weight:g} × auxiliary"
        penalties = [bound.weight * output.auxiliary for output in outputs]

    rows = {
        "loss": spec,
        "term": ", ".join([kind, *notes]),
        "target": target,
        "value": range(size),
        "penalty": [*map(float, penalties)],
    }
    return pd.DataFrame(rows)


def _draw_grid(data: pd.DataFrame) -> Figure:
    """A panel a loss."""
    styles = loss_styles(data["loss"])
    figure, axes = make_grid(len(styles), 2.2)
    for axis, (loss, look) in zip(axes, styles.items(), strict=True):
        curve = select_rows(data, loss=loss)
        draw_curve(axis, curve, look)
        label = folded(loss_label(loss), 30)
        axis.set_title(f"{label}\n({curve['term'].iloc[0]})")
        axis.set(xticks=range(SIZE), xlabel="predicted digit", ylabel="penalty")
    return figure


def draw_curve(axis: Axes, curve: pd.DataFrame, look: LossStyle, **marks: Any) -> None:
    """Draw the penalty of a loss by the predicted value, with a line at the target."""
    axis.axvline(curve["target"].iloc[0], color=GREY, linestyle=":", linewidth=1)
    axis.plot(curve["value"], curve["penalty"], **look.plotted(4, **marks))
    lowest = min(0.0, curve["penalty"].min())
    # With a weight of 0 all penalties are 0, which makes no axis.
    axis.set_ylim(lowest, 1.15 * curve["penalty"].max() or 1.0)
