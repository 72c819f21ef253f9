"""The sensitivity figures: accuracy against one parameter of a loss, a panel a model and task.

The other parameters have their defaults. Cross-entropy, which is what a weight of 0 gives, is a
band; another loss is a curve if its weight was varied too, or a band.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import pandas as pd

from smmd_bench.contracts import Artefact, Run

from ._caption import DEVIATION, INTERVALS, decoding_note, write_caption
from ._cells import REFERENCE, in_order, measured, metrics_beside_published
from ._sample import sample_note
from ._sweep_panels import sweep_figure
from ._variants import GROUP, of_groups, of_shared_seeds, unreadable, values_of

LEAST = 3
"""Values of the parameter that make a sweep."""
PANELS = 12
"""Panels drawn at most; the CSV has all."""


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
        if (why := unreadable(run, self.loss)) is not None:
            return why
        what = f"{self.parameter} of {self.loss}"
        values = {self._value(str(loss), self.loss) for loss in run.cells["loss"].unique()}
        if len(values - {None}) < LEAST:
            return f"the run has fewer than {LEAST} values of {what}"
        if self.data(run).empty:
            return f"no model and task has {LEAST} values of {what} with an accuracy"
        return None

    def build(self, run: Run) -> Artefact:
        """One panel a model and task."""
        data, cells = self.data(run), self.cells(run)
        cells = self._labelled(of_groups(cells, data))
        losses = (self.loss, *self.beside)
        groups = list(data[GROUP].drop_duplicates().itertuples(index=False, name=None))
        figure = sweep_figure(
            data,
            cells[cells["status"] != "done"],
            groups[:PANELS],
            series=[name for name in losses if (data["series"] == name).any()],
            symbol=self.symbol,
            defaults={name: self._value(name, name) or math.nan for name in losses},
            scale=scale_of,
            zero=self.weight,
        )
        several = data.groupby([*GROUP, "loss"], observed=True).size().max() > 1
        spread = f"mean ± {DEVIATION}" if several else INTERVALS
        at_zero = f", which is what {self.symbol} = 0 gives: the point at 0, left of any //"
        caption = write_caption(
            run,
            cells,
            f"Exact match by {self.symbol}, all other parameters at their defaults. "
            f"{decoding_note(run)} Bars and bands: {spread}. The band with a line is CE"
            f"{at_zero if self.weight else ''}. A ring marks the default, and a cross at the foot "
            "a value without a result.",
            self.finding,
            f"Drawn are {PANELS} of {len(groups)} pairs of model and task."
            if len(groups) > PANELS
            else "",
            sample=sample_note(run, cells, of_groups(self._of_run(run), data)),
        )
        return Artefact(caption, figure=figure, data=data)

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
        return cells.assign(
            series=pd.Series([name for name, _ in found], index=cells.index, dtype="object"),
            value=pd.Series([value for _, value in found], index=cells.index, dtype="float64"),
        )

    def _value(self, loss: str, name: str) -> float | None:
        """The parameter's value in a spec that changes it alone; None for any other spec."""
        if loss != name and not loss.startswith(f"{name}[{self.parameter}="):
            return None
        found = values_of(loss, name, self.parameter)
        return found[0] if found is not None and len(found) == 1 else None


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
