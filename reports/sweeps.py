"""Figures 3 and 5 of the paper, and any other sweep of a run: accuracy by one parameter of a loss.

The other parameters have their defaults. Cross-entropy, which is what a weight of 0 gives, is a
band; another loss is a curve if the parameter was varied too, or a band.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import pandas as pd

from smmd_bench.contracts import Artefact, ReportSkippedError, Run
from smmd_bench.publishing.style import (
    GREY,
    LossStyle,
    add_legend,
    loss_label,
    loss_styles,
)
from smmd_bench.results.baselines import REFERENCE

from ._panels import LEAST, make_panels, name_symbol, set_values
from ._results import EXACT, list_pairs, select_pair, select_rows, to_wide
from ._text import make_artefact
from .ablations import list_scans, select_variants

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


class Scan(NamedTuple):
    """A parameter of a loss that varies: its cells, and a row for each with an accuracy."""

    loss: str
    parameter: str
    cells: pd.DataFrame
    data: pd.DataFrame


@dataclass(frozen=True)
class Sweep:
    """How accuracy depends on each parameter that the run varies, against CE.

    `swept` are the loss and its parameter, `beside` are other losses to show.
    """

    name = "sweep"
    title = "Sensitivity to the parameters of the losses"
    paper = "not in the paper"
    swept: ClassVar[tuple[str, str] | None] = None
    beside: ClassVar[tuple[str, ...]] = ()

    def build(self, run: Run) -> Artefact:
        """One panel a parameter, model and task."""
        scanned = self._scans(run)
        if not scanned:
            name = "a parameter in no other sweep"
            if self.swept:
                loss, parameter = self.swept
                name = f"{parameter} of {loss}"
            raise ReportSkippedError(f"the run has fewer than {LEAST} values of {name}")

        panels = []
        for scan in scanned:
            for pair in list_pairs(scan.data):
                panels.append((scan, pair))

        drawn = panels[:PANELS]
        figure, axes = make_panels([pair for _, pair in drawn])
        for axis, (scan, pair) in zip(axes, drawn, strict=True):
            rows = select_pair(scan.data, pair)
            self._panel(axis, scan, _average_points(rows))
        add_legend(figure)

        # The reference is in the cells of each parameter.
        cells = pd.concat([scan.cells for scan in scanned])
        cells = cells.drop_duplicates("address")
        data = pd.concat([scan.data for scan in scanned], ignore_index=True)
        return make_artefact(run, cells, SHOWN, figure=figure, data=data)

    def _scans(self, run: Run) -> list[Scan]:
        """The parameters with enough values, of the losses that this sweep is about."""
        figures = (SigmaSensitivity, LambdaSensitivity, NtlLambdaScan)
        paper = {report.swept for report in figures}
        scanned = []
        for (loss, parameter), values in list_scans(run).items():
            # The general sweep leaves out what a figure of the paper shows.
            swept = (loss, parameter)
            is_wanted = swept == self.swept if self.swept else swept not in paper
            if len(values) < LEAST or not is_wanted:
                continue

            scan = self._scan(run, loss, parameter)
            if not scan.data.empty:
                scanned.append(scan)
        return scanned

    def _scan(self, run: Run, loss: str, parameter: str) -> Scan:
        """The parameter's cells and data: `series` is the name of a row's loss, `value` that of the
        parameter (missing: not swept)."""
        points = self._points_of_specs(run, loss, parameter)
        varied = []
        for spec, (name, _) in points.items():
            if name == loss:
                varied.append(spec)
        cells, data = select_variants(run, points, varied, LEAST)
        if not data.empty:
            # A figure has no bold row.
            data = to_wide(data, [EXACT]).drop(columns="best")
            columns = [points[str(spec)] for spec in data["loss"]]
            data[["series", "value"]] = pd.DataFrame(columns, data.index)
        return Scan(loss, parameter, cells, data)

    def _points_of_specs(
        self, run: Run, loss: str, parameter: str
    ) -> dict[str, tuple[str, float]]:
        """Name and value by loss spec, of cross-entropy, the swept loss and those beside it."""
        points = {REFERENCE: (REFERENCE, math.nan)}
        scanned = list_scans(run)
        for name in (loss, *self.beside):
            # A loss beside the swept one may have been trained once, and then has no value.
            values_by_spec = scanned.get((name, parameter), {name: (math.nan,)})
            for spec, values in values_by_spec.items():
                # A mixture such as sigma=1+2 has no place on the axis.
                if len(values) == 1:
                    points[spec] = (name, values[0])
        return points

    def _panel(self, axis: Axes, scan: Scan, points: pd.DataFrame) -> None:
        # The swept loss is drawn last, over the others.
        names = (*self.beside, scan.loss)
        series = [name for name in names if (points["series"] == name).any()]
        styles = loss_styles([REFERENCE, *series])
        reference = select_rows(points, series=REFERENCE)
        _draw_band(axis, reference, REFERENCE, styles[REFERENCE])

        # With a weight of 0 any loss is cross-entropy, so that its curve begins there.
        start = reference.assign(value=0.0)
        if scan.parameter != WEIGHT:
            start = start[:0]
        for name in series:
            curve = select_rows(points, series=name).sort_values("value")
            if len(curve) > 1:
                _draw_curve(axis, start, curve, name, styles[name])
            else:
                _draw_band(axis, curve, name, styles[name])

        set_values(axis, sorted({*points["value"].dropna(), *start["value"]}))
        label = f"{name_symbol(scan.parameter)} of {loss_label(scan.loss)}"
        axis.set(ylabel="Exact match (%)", xlabel=label)


def _average_points(data: pd.DataFrame) -> pd.DataFrame:
    """One row a loss: mean over seeds, and how far down and up its bars go: the deviation over
    seeds, or the interval of one seed."""
    groups = data.groupby("loss")
    values = groups[f"{EXACT}_value"]
    deviation = values.std()
    points = groups[["series", "value"]].first()
    points["mean"] = values.mean()

    # One seed has no deviation, and several have an interval each, which says nothing of the mean.
    for name, bound in (("down", "low"), ("up", "high")):
        end = groups[f"{EXACT}_{bound}"].first().astype("float64")
        distance = (end - points["mean"]).abs()
        points[name] = deviation.fillna(distance).fillna(0)
    return points


def _draw_band(axis: Axes, points: pd.DataFrame, name: str, look: LossStyle) -> None:
    # It covers the whole axis, as it depends on no value of the parameter.
    for mean, down, up in points[["mean", "down", "up"]].to_numpy():
        axis.axhspan(
            mean - down,
            mean + up,
            color=look.colour,
            alpha=0.13,
            linewidth=0,
            zorder=0,
        )
        axis.axhline(mean, **look.lined(label=loss_label(name), zorder=1))


def _draw_curve(
    axis: Axes, start: pd.DataFrame, curve: pd.DataFrame, name: str, look: LossStyle
) -> None:
    """The points of a loss from `start` on, with a ring around its default."""
    # A weight of 0 that was run replaces the start that stands for it.
    line = pd.concat([start, curve]).drop_duplicates("value", keep="last")
    ends = line[["down", "up"]].to_numpy().T
    plotted = look.plotted(label=loss_label(name), elinewidth=1.1, capsize=2.5)
    axis.errorbar(line["value"], line["mean"], ends, **plotted)

    default = curve[curve.index == name]
    axis.plot(
        default["value"],
        default["mean"],
        "o",
        label="default",
        markersize=14,
        fillstyle="none",
        color=GREY,
        zorder=4,
    )


# The paper prints no numbers of these curves, so that none stand beside ours.
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
