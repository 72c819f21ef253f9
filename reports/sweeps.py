"""Figures 3 and 5 of the paper, and any other sweep of a run: accuracy by one parameter of a loss.

The other parameters have their defaults. Cross-entropy, which is what a weight of 0 gives, is a
band; another loss is a curve if the parameter was varied too, or a band.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.publishing.style import GREY, LossStyle, add_legend, loss_label, loss_styles
from smmd_bench.results.opponents import REFERENCE

from ._cells import of_pair, pairs
from ._panels import LEAST, parameter_panels, set_values, symbol
from ._results import EXACT, to_wide
from ._text import caption, notes_of
from .ablations import scans, variants

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PANELS = 12
"""Panels drawn at most; the CSV has all."""
WEIGHT = "lambda"
"""The parameter that is 0 for cross-entropy."""
SHOWN = (
    "Exact match by the parameter, all others at their defaults; the CSV has paired differences "
    "to CE. The band is CE, which a weight of 0 gives (not to scale on a logarithmic axis); a ring "
    "marks the default. The paper finds σ = 2, λ = 3 and, of NTL, λ = 2 best, without numbers."
)


@dataclass(frozen=True)
class Sweep:
    """How accuracy depends on each parameter that the run varies, against CE.

    `swept` are the loss and its parameter, `beside` are other losses to show.
    """

    name: ClassVar[str] = "sweep"
    title: ClassVar[str] = "Sensitivity to the parameters of the losses"
    paper: ClassVar[str] = "not in the paper"
    swept: ClassVar[tuple[str, str] | None] = None
    beside: ClassVar[tuple[str, ...]] = ()

    def skip(self, run: Run) -> str | None:
        """At least three values of a parameter must have been tried."""
        what = "{1} of {0}".format(*self.swept) if self.swept else "a parameter in no other sweep"
        return None if self._found(run) else f"the run has fewer than {LEAST} values of {what}"

    def build(self, run: Run) -> Artefact:
        """One panel a parameter, model and task."""
        found = self._found(run)
        cells = pd.concat([cells for cells, _ in found.values()]).drop_duplicates("address")
        data = pd.concat([data for _, data in found.values()], ignore_index=True)
        panels = [
            (swept, pair, of_pair(own, pair))
            for swept, (_, own) in found.items()
            for pair in pairs(own)
        ][:PANELS]
        figure, axes = parameter_panels([pair for _, pair, _ in panels])
        for axis, (swept, _, own) in zip(axes, panels, strict=True):
            self._panel(axis, *swept, own)
        add_legend(figure)
        return Artefact(caption(run, cells, SHOWN), None, figure, data, notes_of(None))

    def _found(self, run: Run) -> dict[tuple[str, str], tuple[pd.DataFrame, pd.DataFrame]]:
        """The cells and the data of each parameter with enough values."""
        paper = {report.swept for report in (SigmaSensitivity, LambdaSensitivity, NtlLambdaScan)}
        counts = {swept: len(values) for swept, values in scans(run).items()}
        known = {self.swept} if self.swept else {*counts} - paper
        likely = [swept for swept in counts if swept in known and counts[swept] >= LEAST]
        found = {swept: self._data(run, *swept) for swept in likely}
        return {swept: own for swept, own in found.items() if not own[1].empty}

    def _data(self, run: Run, loss: str, parameter: str) -> tuple[pd.DataFrame, pd.DataFrame]:
        """The cells, and a row for each with an accuracy: `series` is the name of its loss, `value`
        that of its parameter (missing: not swept)."""
        known: dict[str, tuple[str, float]] = {REFERENCE: (REFERENCE, math.nan)}
        for name in (loss, *self.beside):
            for spec, values in scans(run).get((name, parameter), {name: (math.nan,)}).items():
                if len(values) == 1:
                    known[spec] = (name, values[0])
        varied = [spec for spec, (name, _) in known.items() if name == loss]
        cells, data = variants(run, known, varied, LEAST)
        if not data.empty:
            data = to_wide(data, [EXACT]).drop(columns="best")
            named = [known[str(spec)] for spec in data["loss"]]
            data[["series", "value"]] = pd.DataFrame(named, data.index)
        return cells, data

    def _panel(self, axis: Axes, loss: str, parameter: str, data: pd.DataFrame) -> None:
        points = _points(data)
        series = [name for name in (*self.beside, loss) if (points["series"] == name).any()]
        styles = loss_styles([REFERENCE, *series])
        ce = points[points["series"] == REFERENCE].assign(value=0.0)
        start = ce if parameter == WEIGHT else ce[:0]
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
            default = curve[curve.index == name]
            ring: Any = {"markersize": 14, "fillstyle": "none", "color": GREY, "zorder": 4}
            axis.plot(default["value"], default["mean"], "o", label="default", **ring)
        ticks = sorted({*points["value"].dropna(), *start["value"]})
        set_values(axis, ticks)
        axis.set(ylabel="Exact match (%)", xlabel=f"{symbol(parameter)} of {loss_label(loss)}")


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
    swept = ("smmd", "sigma")


class LambdaSensitivity(Sweep):
    """How accuracy depends on the weight of SMMD, against CE."""

    name = "lambda_sensitivity"
    title = "Sensitivity to λ"
    paper = "Figure 3 (b)"
    swept = ("smmd", WEIGHT)


class NtlLambdaScan(Sweep):
    """How accuracy depends on the weight of NTL, against CE and SMMD."""

    name = "ntl_lambda_scan"
    title = "λ scan of NTL"
    paper = "Figure 5 (Appendix C)"
    swept = ("ntl", WEIGHT)
    beside = ("smmd",)
