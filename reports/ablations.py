"""Tables 5, 6 and 9 of the paper: rows are variants of SMMD, columns tasks.

Several models have a block each. A run with one task has a column for each quantity (value,
difference, test, paper), a run with several a row for each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import pandas as pd

from smmd_bench.contracts import Artefact, Run, UserError
from smmd_bench.plugin_system.parameters import parameters_of, spell, split_spec
from smmd_bench.plugin_system.registry import load_loss
from smmd_bench.publishing.style import spaced
from smmd_bench.publishing.tables import DASH, number

from ._cells import measured, of_pair, of_pairs, of_shared_seeds, opponent, why_missing
from ._paper import with_published
from ._results import EXACT, result_frame, widened, with_tests
from ._text import (
    NOTES,
    P_HOLM,
    TO_PAPER,
    caption,
    corrected_p,
    delta,
    estimate,
    gain,
    model_columns,
)

ACCURACY, PAPER = "Acc (%)", "Paper"
METRICS = (EXACT, "parse_failure_rate")


def parameter_values(loss: str, name: str, parameter: str) -> tuple[float, ...] | None:
    """The value or values of a parameter, if the spec is of that loss and changes nothing else.

    None: it is another loss, changes another parameter, or has a default that cannot be read.
    """
    spelled, given = split_spec(loss)
    if spelled != name or {*given} - {parameter}:
        return None
    if parameter in given:
        return tuple(map(float, given[parameter].split("+")))
    try:
        plugin = load_loss(name)
    except UserError:
        return None
    value: Any = getattr(plugin, parameters_of(type(plugin))[parameter].field)
    return value if isinstance(value, tuple) else (value,)


@dataclass(frozen=True)
class Ablation:
    """What an ablation declares, and how its table is made of that.

    `published` is its key in `paper.yaml`, `heading` what its rows vary, `rows` are its loss specs
    with their labels, `usual` those of them that alone make no table.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    paper: ClassVar[str]
    published: ClassVar[str]
    heading: ClassVar[str]
    shown: ClassVar[str]
    usual: ClassVar[tuple[str, ...]]
    rows: ClassVar[Mapping[str, str]] = {}

    def labels(self, run: Run) -> Mapping[str, str]:
        """The loss specs of the rows, in order, with their labels."""
        return self.rows

    def skip(self, run: Run) -> str | None:
        """At least one loss that is not usual must have results."""
        what = self.heading.lower()
        if self._varied(run.cells[run.cells["loss"].isin([*self.labels(run)])]).empty:
            return f"the run varies no {what} of smmd"
        if self._results(run).empty:
            return f"no variant of the {what} of smmd has an accuracy yet"
        return None

    def build(self, run: Run) -> Artefact:
        """One row a variant; tasks are columns."""
        data = self._results(run)
        cells = of_shared_seeds(of_pairs(self._cells(run), data))
        data.attrs["published"] = METRICS[:1]
        table, tasks = self._frame(run, data, cells), data["task"].unique()
        table.attrs["title"] = f"{self.title}: {tasks[0]}" if len(tasks) == 1 else self.title
        words = caption(run, cells, self.shown, "Only seeds that every row has are compared.")
        return Artefact(words, table, data=widened(data, METRICS[:1]), notes=NOTES)

    def _cells(self, run: Run) -> pd.DataFrame:
        """The cells of the rows, for the models and tasks that have a varied one."""
        known = run.cells[run.cells["loss"].isin([*self.labels(run)])]
        return of_pairs(known, self._varied(known))

    def _results(self, run: Run) -> pd.DataFrame:
        """The result frame of the cells with an accuracy; empty if no varied one has."""
        cells = measured(of_shared_seeds(self._cells(run)))
        if cells.empty:
            return cells
        data = with_published(result_frame(run, cells, METRICS), run, cells, self.published)
        known = data.loc[(data["metric"] == EXACT) & data["value"].notna(), "address"]
        data = data[data["address"].isin(known)]
        data = of_pairs(data, self._varied(data))
        return data if data.empty else with_tests(data, run, METRICS[:1])

    def _varied(self, cells: pd.DataFrame) -> pd.DataFrame:
        return cells[~cells["loss"].isin(self.usual)]

    def _frame(self, run: Run, data: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
        """One row a model and variant; with several tasks, one for each of its quantities."""
        data = data[data["metric"] == EXACT]
        tasks, models = (
            [*data[name].cat.remove_unused_categories().cat.categories]
            for name in ("task", "model")
        )
        quantities = [ACCURACY, delta(opponent(data)), P_HOLM]
        quantities += [PAPER, TO_PAPER] * bool(data["published"].notna().any())
        headings = {task: spaced(task) if len(tasks) > 1 else ACCURACY for task in tasks}
        found: list[dict[str, str]] = []
        bold: list[tuple[int, str]] = []
        for model, (loss, label) in product(models, self.labels(run).items()):
            params = run.cells.loc[run.cells["model"] == model, "params"].iloc[0]
            head = {"Model": " ".join(model_columns(model, params).values()), self.heading: label}
            own = {task: of_pair(data[data["loss"] == loss], (model, task)) for task in tasks}
            bold += [(len(found), headings[task]) for task in tasks if own[task]["best"].any()]
            texts = {
                task: dict(
                    zip(quantities, _texts(own[task], cells, model, loss, task), strict=False)
                )
                for task in tasks
            }
            if len(tasks) == 1:
                found.append(head | texts[tasks[0]])
                continue
            for quantity in quantities:
                values = {headings[task]: texts[task][quantity] for task in tasks}
                if quantity == ACCURACY or {*values.values()} != {DASH}:
                    found.append({**head, "Value": quantity, **values})
        table = pd.DataFrame(found)
        table.attrs["bold"] = bold
        return table


def _texts(own: pd.DataFrame, cells: pd.DataFrame, model: str, loss: str, task: str) -> list[str]:
    """The quantities of one model, task and loss."""
    if own.empty:
        here = of_pair(cells, (model, task))
        lost = here[here["loss"] == loss]
        why = DASH if here.empty else "not run" if lost.empty else why_missing(lost)
        return [why, DASH, DASH, DASH, DASH]
    accuracy = estimate(own, 1, interval=True)
    to_paper = number(own["against_published"].mean(), 1, sign=True)
    return [accuracy, gain(own), corrected_p(own), number(own["published"].iloc[0]), to_paper]


class TermsTable(Ablation):
    """Accuracy with each term of SMMD on and off, by task, with the difference to CE."""

    name = "terms_table"
    title = "Effect of the MMD and smoothness terms"
    paper = "Table 5"
    published = "ablation"
    heading = "Terms"
    shown = (
        "Exact match of SMMD by its terms, a squared MMD (smmd[term=mmd]) and a smoothness term "
        "(smmd[term=smooth]); with neither it is CE."
    )
    usual = ("ce", "smmd")
    rows: ClassVar = {
        "ce": "none (CE)",
        "smmd[term=mmd]": "MMD",
        "smmd[term=smooth]": "smoothness",
        "smmd": "MMD + smoothness",
    }


class KernelTable(Ablation):
    """Accuracy by what the kernel of the MMD term is made from, with the difference to CE."""

    name = "kernel_table"
    title = "Kernel structure, MMD term alone"
    paper = "Table 6"
    published = "kernel_ablation"
    heading = "Kernel"
    shown = (
        "Exact match with the MMD term alone (smmd[term=mmd]), whose kernel is made from the "
        "distances between the values, from the values shuffled among the tokens "
        "(kernel=shuffled), or at random (kernel=random)."
    )
    usual = ("ce", "smmd[term=mmd]")
    rows: ClassVar = {
        "ce": "none (CE)",
        "smmd[kernel=random,term=mmd]": "random PSD",
        "smmd[kernel=shuffled,term=mmd]": "shuffled values",
        "smmd[term=mmd]": "distances",
    }


class BandwidthTable(Ablation):
    """Accuracy by the set of bandwidths of SMMD, with the difference to CE."""

    name = "bandwidth_table"
    title = "Bandwidths of the kernel"
    paper = "Table 9"
    published = "sigma"
    heading = "Bandwidth"
    shown = (
        "Exact match of SMMD, whose kernel is the mean of Gaussian kernels of these bandwidths: "
        "{1, 2, 3} is smmd[sigma=1+2+3], and {2} the default."
    )
    usual = ("ce", "smmd")

    def skip(self, run: Run) -> str | None:
        """At least one set must not be the default; for a name alone no loss is imported."""
        if not any("sigma=" in str(loss) for loss in run.cells["loss"].cat.categories):
            return "the run varies no bandwidth of smmd"
        return super().skip(run)

    def labels(self, run: Run) -> dict[str, str]:
        """CE, and the losses of the run that change the bandwidths alone, small sets first."""
        losses = map(str, run.cells["loss"].cat.categories)
        named = [loss for loss in losses if loss == "smmd" or "sigma=" in loss]
        found = {loss: parameter_values(loss, "smmd", "sigma") for loss in named}
        sets = [(len(values), values, loss) for loss, values in found.items() if values is not None]
        labels = {loss: f"{{{', '.join(map(spell, values))}}}" for _, values, loss in sorted(sets)}
        return {"ce": "none (CE)", **labels}
