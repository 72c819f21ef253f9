"""The sensitivity figures: accuracy against one parameter of a loss, a panel a model and task.

The other parameters have their defaults. Cross-entropy, which is what a weight of 0 gives, is a
band; another loss is a curve if its weight was varied too, or a band.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.publishing.style import GREY, LossStyle, add_legend, loss_label, loss_styles

from ._caption import DEVIATION, INTERVALS, decoding_note, sample_note, when, write_caption
from ._cells import REFERENCE, in_order, measured, metrics_beside_published
from ._gains import INTERVALS as PAIRED
from ._panels import Pair, of_pair, pairs, panel_grid
from ._sweep_axis import LEAST, set_scale
from ._sweep_differences import differences, draw_differences
from ._variants import GROUP, of_groups, of_shared_seeds, unreadable, values_of

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANELS = 12
"""Panels drawn at most; the CSV has all."""
APART = 6.0
"""Points between the bars of two curves at the same value."""


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
        what = f"{self.parameter} of {self.loss}"
        few = f"the run has fewer than {LEAST} values of {what}"
        specs = [spec for spec in map(str, run.cells["loss"].unique()) if self._may_vary(spec)]
        if len(specs) < LEAST:
            return few  # no loss is imported for that
        if (why := unreadable(run, self.loss)) is not None:
            return why
        if len({self._value(spec, self.loss) for spec in specs} - {None}) < LEAST:
            return few
        if self.data(run).empty:
            return f"no model and task has {LEAST} values of {what} with an accuracy"
        return None

    def build(self, run: Run) -> Artefact:
        """One panel a model and task."""
        data = self.data(run)
        cells = self._labelled(of_groups(self.cells(run), data))
        drawn, paired = pairs(data), differences(run, data)
        several = data.groupby([*GROUP, "loss"], observed=True).size().max() > 1
        at_zero = f", which is what {self.symbol} = 0 gives: the point at 0, left of any //"
        caption = write_caption(
            run,
            cells,
            f"Exact match by {self.symbol}, all other parameters at their defaults. "
            f"{decoding_note(run)} Bars and bands: "
            f"{f'mean ± {DEVIATION}' if several else INTERVALS}. The band with a line is CE"
            f"{at_zero * self.weight}. A ring marks the default, and a cross at the foot a value "
            "without a result.",
            when(len(paired), f"Below: the paired difference to CE (points), {PAIRED}"),
            self.finding,
            when(len(drawn) > PANELS, f"Drawn are {PANELS} of {len(drawn)} models and tasks."),
            sample=sample_note(run, cells, of_groups(self._of_run(run), data)),
        )
        lacking = cells[cells["status"] != "done"]
        figure = self._figure(data, paired, lacking, drawn[:PANELS])
        return Artefact(figure=figure, data=data, **caption)

    def data(self, run: Run) -> pd.DataFrame:
        """One row a cell with an accuracy, for the models and tasks with enough values.

        `series` is the name of the loss, `value` that of its parameter (missing: not swept).
        """
        cells = measured(self.cells(run))
        if cells.empty:
            return cells
        data = metrics_beside_published(run, cells, ["exact_match", "parse_failure_rate"])
        data = in_order(self._labelled(data[data["exact_match_value"].notna()]), run.cells)
        return of_groups(data, self._enough(data)).reset_index(drop=True)

    def cells(self, run: Run) -> pd.DataFrame:
        """The cells of the figure, measured or not, of the seeds that all of them have."""
        return of_shared_seeds(self._of_run(run))

    def _of_run(self, run: Run) -> pd.DataFrame:
        """The cells of all seeds, for the models and tasks that have enough values.

        A loss beside the swept one that has fewer values is shown at its default alone.
        """
        cells = self._labelled(run.cells)
        kept = of_groups(cells, self._enough(cells))
        kept = kept[kept["series"].notna()]
        values = kept.groupby([*GROUP, "series"], observed=True)["value"].transform("nunique")
        few = kept["series"].isin(self.beside) & (values < LEAST)
        return kept[~few | (kept["loss"].astype("str") == kept["series"])]

    def _enough(self, labelled: pd.DataFrame) -> pd.DataFrame:
        """The models and tasks with enough values of the parameter."""
        swept = labelled[labelled["series"] == self.loss]
        counts = swept.groupby(GROUP, observed=True)["value"].nunique()
        return counts[counts >= LEAST].reset_index()

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

    def _may_vary(self, loss: str, name: str | None = None) -> bool:
        """Whether a spec is the loss (the swept one) itself, or begins with the parameter."""
        name = name or self.loss
        return loss == name or loss.startswith(f"{name}[{self.parameter}=")

    def _value(self, loss: str, name: str) -> float | None:
        """The parameter's value in a spec that changes it alone; None for any other spec."""
        if not self._may_vary(loss, name):
            return None
        found = values_of(loss, name, self.parameter)
        return found[0] if found is not None and len(found) == 1 else None

    def _figure(
        self, data: pd.DataFrame, paired: pd.DataFrame, lacking: pd.DataFrame, drawn: list[Pair]
    ) -> Figure:
        """One panel a model and task, above its paired differences; `lacking` are cells of the
        figure without a result."""
        parts = (3, 2) if len(paired) else (1,)
        figure, axes = panel_grid(drawn, 4.1 if len(paired) else 2.7, parts=parts)
        series = [x for x in (self.loss, *self.beside) if (data["series"] == x).any()]
        styles = loss_styles([REFERENCE, *series])
        below = iter(axes[1 :: len(parts)].flat)
        for axis, pair in zip(axes[:: len(parts)].flat, drawn, strict=False):
            points, missing = _points(of_pair(data, pair)), of_pair(lacking, pair)["value"].dropna()
            ce = points[points["series"] == REFERENCE].assign(value=0.0)
            start = ce if self.weight else ce[:0]
            grid = [*points["value"].dropna(), *missing, *start["value"]]
            set_scale(axis, grid)
            _band(axis, ce, REFERENCE, styles[REFERENCE])
            curves = {x: points[points["series"] == x].sort_values("value") for x in series[::-1]}
            for name in [name for name, curve in curves.items() if len(curve) < 2]:
                _band(axis, curves.pop(name), name, styles[name])
            for at, (name, curve) in enumerate(curves.items()):
                artists = _curve(axis, curve, start, name, styles[name])
                default = curve.loc[curve["value"] == self._value(name, name), ["value", "mean"]]
                ring: Any = {"markersize": 14, "fillstyle": "none", "color": GREY, "zorder": 4}
                artists += axis.plot(*default.to_numpy().T, "o", label="default", **ring)
                _shift(figure, artists, APART * ((len(curves) - 1) / 2 - at))
            if self.weight:
                _bars(axis, ce, styles[REFERENCE])
            if len(missing):
                cross: Any = {"linestyle": "none", "color": GREY, "label": "no result"}
                foot = axis.get_xaxis_transform()
                axis.plot(missing, [0.03] * len(missing), "X", transform=foot, **cross)
            if len(parts) > 1:
                axis.tick_params(labelbottom=False)
                axis, above = next(below), axis
                set_scale(axis, grid)
                axis.axhline(0, color="black", linewidth=0.9)
                own = of_pair(paired, pair)
                for at, name in enumerate(curves):
                    artists = draw_differences(axis, own[own["series"] == name], styles[name])
                    _shift(figure, artists, APART * ((len(curves) - 1) / 2 - at))
                axis.set_xlim(above.get_xlim())
            axis.set_xlabel(self.symbol)
        for axis in axes[:: len(parts), 0]:
            axis.set_ylabel("Exact match (%)")
        for axis in axes[1 :: len(parts), 0]:
            axis.set_ylabel("Δ to CE (points)")
        add_legend(figure)
        return figure


def _points(data: pd.DataFrame) -> pd.DataFrame:
    """One row a loss: mean over seeds, and how far its bar goes; one seed: its interval."""
    rows = []
    for _, cells in data.groupby("loss", observed=True):
        first, values = cells.iloc[0], cells["exact_match_value"].astype("float64")
        mean, deviation = values.mean(), values.std()
        below, above = mean - first["exact_match_low"], first["exact_match_high"] - mean
        ends = (below, above) if math.isnan(deviation) else (deviation, deviation)
        rows.append((first["value"], mean, *(max(0.0, end) for end in ends), first["series"]))
    numbers = ["value", "mean", "below", "above"]
    found = pd.DataFrame(rows, columns=[*numbers, "series"])
    return found.astype(dict.fromkeys(numbers, "float64")).fillna({"below": 0, "above": 0})


def _bars(axis: Axes, points: pd.DataFrame, style: LossStyle) -> list[Artist]:
    drawn = style.plotted(linestyle="none", elinewidth=1.1, capsize=2.5, zorder=3)
    lengths = points[["below", "above"]].to_numpy().T
    return list(axis.errorbar(points["value"], points["mean"], lengths, **drawn).get_children())


def _curve(
    axis: Axes, points: pd.DataFrame, start: pd.DataFrame, name: str, style: LossStyle
) -> list[Artist]:
    line = pd.concat([frame for frame in (start, points) if len(frame)])
    line = line.drop_duplicates("value", keep="last")
    own = range(len(line) - len(points), len(line))
    drawn = style.plotted(markevery=own, label=loss_label(name), zorder=2)
    return [*axis.plot(line["value"], line["mean"], **drawn), *_bars(axis, points, style)]


def _shift(figure: Figure, drawn: Iterable[Artist], points: float) -> None:
    """Move what is drawn that many points to the right; its data stay what they are."""
    from matplotlib.transforms import ScaledTranslation

    moved = ScaledTranslation(points / 72, 0, figure.dpi_scale_trans)
    for artist in drawn:
        artist.set_transform(artist.get_transform() + moved)


def _band(axis: Axes, points: pd.DataFrame, name: str, style: LossStyle) -> None:
    for mean, below, above in points[["mean", "below", "above"]].to_numpy():
        ends = mean - below, mean + above
        axis.axhspan(*ends, color=style.colour, alpha=0.13, linewidth=0, zorder=0)
        axis.axhline(mean, **style.lined(label=loss_label(name), zorder=1))
