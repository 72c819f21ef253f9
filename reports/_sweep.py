"""What the sensitivity figures share: accuracy against one parameter of a loss.

A panel a model and task. The other parameters have their defaults. Cross-entropy, which is what a
weight of 0 gives, is a band; another loss is a curve if its weight was varied too, or a band.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import pandas as pd

from smmd_bench.contracts import Artefact

from ._cells import REFERENCE, decoding, in_order, measured, metrics_beside_published, missing_note
from ._sample import sample_note
from ._sweep_panels import sweep_figure
from ._variants import GROUP, default_of, of_groups, of_shared_seeds, unreadable, values_of

if TYPE_CHECKING:
    from smmd_bench.contracts import Run

LEAST = 3
"""Values of the parameter that make a sweep."""
PANELS = 12
"""Panels drawn at most; the CSV has all."""


@dataclass(frozen=True)
class Sweep:
    """What differs between the figures.

    `loss` and its `parameter` are swept, `symbol` is how axes name it; `beside` are other losses to
    show; `weight` says that 0 is cross-entropy; `finding` is what the paper says of its figure.
    """

    loss: str
    parameter: str
    symbol: str
    finding: str
    beside: tuple[str, ...] = ()
    weight: bool = True

    def skip(self, run: Run) -> str | None:
        """Why there is nothing to draw; None: there is."""
        if (why := unreadable(run, self.loss)) is not None:
            return why
        what = f"{self.parameter} of {self.loss}"
        values = {self._value(loss, self.loss) for loss in map(str, run.cells["loss"].unique())}
        if len(values - {None}) < LEAST:
            return f"the run has fewer than {LEAST} values of {what}"
        if self.data(run).empty:
            return f"no model and task has {LEAST} values of {what} with an accuracy"
        return None

    def data(self, run: Run) -> pd.DataFrame:
        """One row a cell with an accuracy, for the models and tasks with enough values.

        `series` is the name of the loss, `value` that of its parameter (missing: not swept).
        """
        cells = measured(self.cells(run))
        if cells.empty:
            return cells
        data = metrics_beside_published(run, cells, ["exact_match", "parse_failure_rate"], None, ())
        data = in_order(self._labelled(data[data["exact_match_value"].notna()]), run.cells)
        swept = data[data["series"] == self.loss]
        counts = swept.groupby(GROUP, observed=True)["value"].nunique()
        enough = counts[counts >= LEAST].reset_index()
        return of_groups(data, enough).reset_index(drop=True)

    def cells(self, run: Run) -> pd.DataFrame:
        """The cells of the figure, measured or not, of the seeds that all of them have."""
        return of_shared_seeds(self._of_run(run))

    def _of_run(self, run: Run) -> pd.DataFrame:
        """The cells of all seeds, for the models and tasks that have enough values."""
        cells = run.cells
        kept = []
        for _, group in cells.groupby(GROUP, observed=True):
            group = self._labelled(group)
            if group.loc[group["series"] == self.loss, "value"].nunique() < LEAST:
                continue
            for name in self.beside:
                here = group["series"] == name
                if here.any() and group.loc[here, "value"].nunique() < LEAST:
                    group = group[~here | (group["loss"] == name)]
            kept.append(group[group["series"].notna()])
        return pd.concat(kept) if kept else cells[:0]

    def _labelled(self, cells: pd.DataFrame) -> pd.DataFrame:
        """With `series` and `value`; both are missing where a cell is none of the figure."""
        series: list[str | None] = []
        values: list[float] = []
        for loss in map(str, cells["loss"]):
            found = {name: self._value(loss, name) for name in (self.loss, *self.beside)}
            named = [name for name, value in found.items() if value is not None]
            series.append(REFERENCE if loss == REFERENCE else next(iter(named), None))
            values.append(next((v for v in found.values() if v is not None), math.nan))
        return cells.assign(
            series=pd.Series(series, index=cells.index, dtype="object"),
            value=pd.Series(values, index=cells.index, dtype="float64"),
        )

    def _value(self, loss: str, name: str) -> float | None:
        """The parameter's value in a spec that changes it alone; None for any other spec."""
        if loss != name and not loss.startswith(f"{name}[{self.parameter}="):
            return None
        found = values_of(loss, name, self.parameter)
        return found[0] if found is not None and len(found) == 1 else None

    def artefact(self, run: Run) -> Artefact:
        """The figure, its data and caption."""
        data, cells = self.data(run), self.cells(run)
        cells = self._labelled(of_groups(cells, data))
        groups = list(data[GROUP].drop_duplicates().itertuples(index=False, name=None))
        figure = sweep_figure(
            data,
            cells[cells["status"] != "done"],
            groups[:PANELS],
            series=[name for name in (self.loss, *self.beside) if (data["series"] == name).any()],
            symbol=self.symbol,
            defaults={name: default_of(name, self.parameter) for name in (self.loss, *self.beside)},
            scale=scale_of,
            zero=self.weight,
        )
        caption = self._caption(run, data, cells, len(groups))
        return Artefact(caption=caption + missing_note(cells), figure=figure, data=data)

    def _caption(self, run: Run, data: pd.DataFrame, cells: pd.DataFrame, panels: int) -> str:
        several = data.groupby([*GROUP, "loss"], observed=True).size().max() > 1
        spread = (
            "mean ± standard deviation over training seeds"
            if several
            else "95 % interval, percentile bootstrap over the test examples"
        )
        parts = [
            f"Exact match by {self.symbol}, all other parameters at their defaults.",
            decoding(run),
            f"Bars and bands: {spread}. The band with a line is CE"
            + (f", which is what {self.symbol} = 0 gives: the point at 0." if self.weight else "."),
            "A ring marks the default.",
            *self._axis_notes(data),
            sample_note(run, cells, of_groups(self._of_run(run), data)),
            self.finding,
        ]
        if panels > PANELS:
            parts.append(f"Drawn are {PANELS} of {panels} pairs of model and task.")
        if (cells["status"] != "done").any():
            parts.append("A cross at the foot marks a value without a result.")
        return " ".join(parts)

    def _axis_notes(self, data: pd.DataFrame) -> list[str]:
        """What has to be said of the values along the axis."""
        notes = []
        swept = data[data["value"].notna()]
        counts = swept.groupby([*GROUP, "series"], observed=True)["value"].nunique()
        if (counts[counts > 1].groupby(GROUP, observed=True).size() > 1).any():
            notes.append(f"Losses with the same {self.symbol} stand side by side.")
        grids = swept.groupby(GROUP, observed=True)["value"].apply(list)
        if self.weight and any(scale_of(grid) == "log" for grid in grids):
            notes.append("The axis is logarithmic but for 0, left of the //.")
        return notes


def scale_of(values: Sequence[float]) -> str:
    """ "log" where the steps of a grid are more even in ratio than in difference, else "linear".

    A zero is left out of account.
    """
    grid = sorted({value for value in values if value > 0})
    if len(grid) < LEAST:
        return "linear"

    def unevenness(points: Sequence[float]) -> float:
        steps = [after - before for before, after in pairwise(points)]
        return statistics.pstdev(steps) / statistics.fmean(steps)

    even = unevenness([math.log(value) for value in grid]) < unevenness(grid) - 1e-9
    return "log" if even else "linear"
