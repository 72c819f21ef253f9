"""Figure 3 and Appendix C of the paper: accuracy against one parameter of a loss.

The other parameters have their defaults. Cross-entropy, which is what a weight of 0 gives, is a
band; another loss is a curve if its weight was varied too, or a band.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.publishing.style import GREY, LossStyle, add_legend, loss_label, loss_styles

from ._cells import PAIR, REFERENCE, Pair, measured, of_pair, of_pairs, of_shared_seeds, pairs
from ._panels import panel_grid
from ._results import EXACT, result_frame, widened, with_tests
from ._text import NOTES, caption
from .ablations import METRICS, parameter_values

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEAST, PANELS, WIDE = 3, 12, 20
"""Values of the parameter that make a sweep, panels drawn at most (the CSV has all), and how many
times the smallest value the largest is on a logarithmic axis."""
SHOWN = (
    "Exact match by the parameter, all others at their defaults; the CSV has paired differences "
    "to CE. The band is CE, which a weight of 0 gives (not to scale on a logarithmic axis); a ring "
    "marks the default."
)


@dataclass(frozen=True)
class Sweep:
    """What a sweep declares, and how its figure is made of that.

    `loss` and its `parameter` are swept, `symbol` is how axes name it; `beside` are other losses to
    show; `weight` says that 0 is cross-entropy; `finding` is what the paper says of its figure.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    paper: ClassVar[str]
    loss: ClassVar[str]
    parameter: ClassVar[str]
    symbol: ClassVar[str]
    finding: ClassVar[str]
    beside: ClassVar[tuple[str, ...]] = ()
    weight: ClassVar[bool] = True

    def skip(self, run: Run) -> str | None:
        """At least three values of the parameter must have been tried."""
        few = f"the run has fewer than {LEAST} values of {self.parameter} of {self.loss}"
        named = f"{self.loss}[{self.parameter}="
        if sum(str(spec).startswith(named) for spec in run.cells["loss"].unique()) < LEAST - 1:
            return few  # no loss is imported for that
        return few if self._data(run).empty else None

    def build(self, run: Run) -> Artefact:
        """One panel a model and task."""
        data = self._data(run)
        words = caption(run, of_pairs(self._cells(run), data), SHOWN, self.finding)
        figure = self._figure(data, pairs(data)[:PANELS])
        return Artefact(words, figure=figure, data=data, notes=NOTES)

    def _data(self, run: Run) -> pd.DataFrame:
        """One row a cell with an accuracy, for the models and tasks with enough values.

        `series` is the name of the loss, `value` that of its parameter (missing: not swept).
        """
        cells = measured(self._cells(run))
        if cells.empty:
            return cells
        data = with_tests(result_frame(run, cells, METRICS), run, [EXACT])
        data = self._labelled(widened(data, [EXACT]).drop(columns="best"))
        data = data[data[f"{EXACT}_value"].notna()]
        return self._with_enough(data).reset_index(drop=True)

    def _cells(self, run: Run) -> pd.DataFrame:
        """The cells of the figure, measured or not, of the seeds that all of them have."""
        kept = self._with_enough(self._labelled(run.cells))
        return of_shared_seeds(kept[kept["series"].notna()])

    def _with_enough(self, labelled: pd.DataFrame) -> pd.DataFrame:
        """The rows of models and tasks with enough values of the parameter."""
        swept = labelled[labelled["series"] == self.loss]
        counts = swept.groupby(PAIR, observed=True)["value"].nunique()
        return of_pairs(labelled, counts[counts >= LEAST].reset_index())

    def _labelled(self, cells: pd.DataFrame) -> pd.DataFrame:
        """With `series` and `value`; both are missing where a cell is none of the figure."""
        known: dict[str, tuple[str | None, float]] = {REFERENCE: (REFERENCE, math.nan)}
        for loss in map(str, cells["loss"].unique()):
            for name in (self.loss, *self.beside):
                if (value := self._value(loss, name)) is not None:
                    known.setdefault(loss, (name, value))
        found = [known.get(str(loss), (None, math.nan)) for loss in cells["loss"]]
        named = pd.DataFrame(found, cells.index, ["series", "value"])
        return cells.assign(**named.astype({"series": "object", "value": "float64"}))

    def _value(self, loss: str, name: str) -> float | None:
        """The parameter's value in a spec that changes it alone; None for any other spec."""
        found = parameter_values(loss, name, self.parameter)
        return found[0] if found is not None and len(found) == 1 else None

    def _figure(self, data: pd.DataFrame, drawn: list[Pair]) -> Figure:
        """One panel a model and task."""
        figure, axes = panel_grid(drawn, 2.9)
        series = [x for x in (*self.beside, self.loss) if (data["series"] == x).any()]
        styles = loss_styles([REFERENCE, *series])
        for axis, pair in zip(axes, drawn, strict=True):
            points = _points(of_pair(data, pair))
            ce = points[points["series"] == REFERENCE].assign(value=0.0)
            start = ce if self.weight else ce[:0]
            _band(axis, ce, REFERENCE, styles[REFERENCE])
            for name in series:
                curve = points[points["series"] == name].sort_values("value")
                if len(curve) < 2:
                    _band(axis, curve, name, styles[name])
                    continue
                line = pd.concat([start, curve]).drop_duplicates("value", keep="last")
                ends = line[["down", "up"]].to_numpy().T
                how = styles[name].plotted(label=loss_label(name), elinewidth=1.1, capsize=2.5)
                axis.errorbar(line["value"], line["mean"], ends, **how)
                default = curve[curve["value"] == self._value(name, name)]
                ring: Any = {"markersize": 14, "fillstyle": "none", "color": GREY, "zorder": 4}
                axis.plot(default["value"], default["mean"], "o", label="default", **ring)
            ticks = sorted({*points["value"].dropna(), *start["value"]})
            positive = [value for value in ticks if value > 0]
            if positive[-1] >= WIDE * positive[0]:
                axis.set_xscale("symlog", linthresh=positive[0], linscale=0.5)
            axis.set_xticks(ticks, [f"{value:g}" for value in ticks])
            axis.set_xticks([], minor=True)
            axis.set(ylabel="Exact match (%)", xlabel=self.symbol)
        add_legend(figure)
        return figure


def _points(data: pd.DataFrame) -> pd.DataFrame:
    """One row a loss: mean over seeds, and how far down and up its bars go: the deviation over
    seeds, or the interval of one seed."""
    groups = data.groupby("loss", observed=True)
    points, values = groups[["series", "value"]].first(), groups[f"{EXACT}_value"]
    points["mean"], deviation = values.mean(), values.std()
    for name, column in (("down", "low"), ("up", "high")):
        end = groups[f"{EXACT}_{column}"].first().astype("float64")
        points[name] = deviation.fillna((end - points["mean"]).abs()).fillna(0)
    return points


def _band(axis: Axes, points: pd.DataFrame, name: str, how: LossStyle) -> None:
    for mean, down, up in points[["mean", "down", "up"]].to_numpy():
        axis.axhspan(mean - down, mean + up, color=how.colour, alpha=0.13, linewidth=0, zorder=0)
        axis.axhline(mean, **how.lined(label=loss_label(name), zorder=1))


class SigmaSensitivity(Sweep):
    """How accuracy depends on a single bandwidth, against CE."""

    name = "sigma_sensitivity"
    title = "Sensitivity to σ"
    paper = "Figure 3 (a)"
    loss = "smmd"
    parameter = "sigma"
    symbol = "σ"
    weight = False
    finding = "The paper finds accuracy highest near σ = 2.0 and prints no numbers."


class LambdaSensitivity(Sweep):
    """How accuracy depends on the weight of SMMD, against CE."""

    name = "lambda_sensitivity"
    title = "Sensitivity to λ"
    paper = "Figure 3 (b)"
    loss = "smmd"
    parameter = "lambda"
    symbol = "λ"
    finding = (
        "The paper finds accuracy above that of λ = 0 over a broad range, highest near λ = 3, and "
        "prints no numbers."
    )


class NtlLambdaScan(Sweep):
    """How accuracy depends on the weight of NTL, against CE and SMMD."""

    name = "ntl_lambda_scan"
    title = "λ scan of NTL"
    paper = "Figure 5 (Appendix C)"
    loss = "ntl"
    parameter = "lambda"
    symbol = "λ"
    beside = ("smmd",)
    finding = (
        "The paper finds NTL best at λ = 2.0, takes that as the default, and prints no numbers."
    )
