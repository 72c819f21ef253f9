"""Tables 5, 6 and 9 of the paper: variants of SMMD.

A variant has a row a model and task.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd

from smmd_bench.contracts import Artefact, Run, UserError
from smmd_bench.plugin_system.parameters import parameters_of, spell, split_spec
from smmd_bench.plugin_system.registry import load_loss
from smmd_bench.publishing.tables import DASH, number

from ._cells import measured, of_pair, of_pairs, of_shared_seeds, opponent, pairs, why_missing
from ._paper import with_published
from ._results import EXACT, result_frame, widened, with_tests
from ._text import NOTES, P_HOLM, TO_PAPER, caption, delta, estimate, gain, model_columns, p_text

ACCURACY = "Acc (%)"
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
        """One row a model, task and variant."""
        data = self._results(run)
        cells = of_shared_seeds(of_pairs(self._cells(run), data))
        table = self._table(run, data[data["metric"] == EXACT], cells)
        words = caption(run, cells, self.shown, "Only seeds that every row has are compared.")
        data.attrs["published"] = METRICS[:1]
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

    def _table(self, run: Run, data: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
        rows: list[dict[str, str]] = []
        bold: list[tuple[int, str]] = []
        for pair in pairs(data):
            own, there = of_pair(data, pair), of_pair(cells, pair)
            model = " ".join(model_columns(pair[0], there["params"].iloc[0]).values())
            for loss, label in self.labels(run).items():
                here, lost = own[own["loss"] == loss], there[there["loss"] == loss]
                row = {"Model": model, "Task": pair[1], self.heading: label}
                bold += [(len(rows), ACCURACY)] * bool(here["best"].any())
                rows.append(row | _values(here, lost, delta(opponent(data))))
        table = pd.DataFrame(rows).fillna(DASH)
        title = self.title
        if data["task"].nunique() == 1:
            table, title = table.drop(columns="Task"), f"{title}: {data['task'].iloc[0]}"
        if data["published"].isna().all():
            table = table.drop(columns=["Paper", TO_PAPER])
        table.attrs |= {"title": title, "bold": bold}
        return table


def _values(own: pd.DataFrame, cells: pd.DataFrame, difference: str) -> dict[str, str]:
    """The quantities of one model, task and loss, or why there are none."""
    if own.empty:
        return {ACCURACY: "not run" if cells.empty else why_missing(cells)}
    return {
        ACCURACY: estimate(own, 1, interval=True),
        difference: gain(own),
        P_HOLM: p_text(own["gain_p"].iloc[0]),
        "Paper": number(own["published"].iloc[0]),
        TO_PAPER: number(own["against_published"].mean(), 1, sign=True),
    }


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
