"""Tables 5, 6 and 9 of the paper, and the other variants of a run: a row a model, task and variant.

`variants` selects the cells of `sweeps`, too: the models and tasks that vary something.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.plugin_system.parameters import is_tuned, spell, split_spec
from smmd_bench.publishing.style import loss_label
from smmd_bench.publishing.tables import DASH, number
from smmd_bench.results.opponents import REFERENCE

from ._cells import PAIR, measured, of_pair, opponent, pairs, why_missing
from ._paper import with_published
from ._results import EXACT, result_frame, to_wide, with_tests
from ._text import P_HOLM, TO_PAPER, caption, delta, estimate, gain, model_columns, notes_of, p_text

ACCURACY, CE = "Acc (%)", "none (CE)"
METRICS = (EXACT, "parse_failure_rate")


def scans(run: Run) -> dict[tuple[str, str], dict[str, tuple[float, ...]]]:
    """By loss and parameter the specs that change no other one, with its number or numbers, such as
    (1, 2) of `smmd[sigma=1+2]`; the loss itself has its default."""
    specs: dict[tuple[str, str], list[str]] = {}
    for spec in filter(lambda spec: not is_tuned(spec), loss_specs(run)):
        name, parameters = split_spec(spec)
        for parameter in parameters if len(parameters) == 1 else ():
            specs.setdefault((name, parameter), [name]).append(spec)
    cells = run.cells.drop_duplicates("loss").set_index("loss")
    found: dict[tuple[str, str], dict[str, tuple[float, ...]]] = {}
    for (name, parameter), own in specs.items():
        known = cells.loc[cells.index.isin(own), parameter].dropna()
        numbers = {str(spec): _numbers(str(value)) for spec, value in known.items()}
        found[name, parameter] = {spec: values for spec, values in numbers.items() if values}
    return found


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(map(float, text.split("+")))
    except ValueError:
        return ()


def loss_specs(run: Run) -> list[str]:
    """The loss specs of a run in order; of completions made elsewhere none."""
    return [] if "predictions" in run.manifest else [*map(str, run.cells["loss"].cat.categories)]


def with_enough(
    cells: pd.DataFrame, losses: Collection[str], varied: Collection[str], least: int
) -> pd.DataFrame:
    """The rows of these losses, for the models and tasks with at least so many varied ones."""
    known = cells[cells["loss"].isin([*losses])]
    own = known["loss"].astype("object").where(known["loss"].isin([*varied]))
    counts = own.groupby([known[name] for name in PAIR], observed=True).transform("nunique")
    return known[counts >= least]


def of_shared_seeds(cells: pd.DataFrame) -> pd.DataFrame:
    """For each model and task the cells of the seeds that all its losses have; all if none is."""
    losses = cells.groupby(PAIR, observed=True)["loss"].transform("nunique")
    shared = losses == cells.groupby([*PAIR, "seed"], observed=True)["loss"].transform("nunique")
    some = shared.groupby([cells[name] for name in PAIR], observed=True).transform("any")
    return cells[shared | ~some]


def variants(
    run: Run, losses: Collection[str], varied: Collection[str], least: int, table: str = ""
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The cells `with_enough`, of the seeds that all losses have, and their result frame, which is
    empty if too few have an accuracy. `table` has their published values."""
    cells = of_shared_seeds(with_enough(run.cells, losses, varied, least))
    done = measured(cells)
    if done.empty:
        return cells, done
    data = with_published(result_frame(run, done, METRICS), run, done, table)
    known = data.loc[(data["metric"] == EXACT) & data["value"].notna(), "address"]
    data = with_enough(data[data["address"].isin(known)], losses, varied, least)
    data = data if data.empty else with_tests(data, run, [EXACT])
    return cells.merge(data[PAIR].drop_duplicates()), data


@dataclass(frozen=True)
class Ablation:
    """Accuracy of variants that no other table of the paper has, with the difference to CE.

    `published` is its key in `paper.yaml`, `heading` what its rows vary, `rows` are its loss specs
    with their labels, `usual` those of them that alone make no table.
    """

    name: ClassVar[str] = "ablation"
    title: ClassVar[str] = "Variants of the losses"
    paper: ClassVar[str] = "not in the paper"
    published: ClassVar[str] = ""
    heading: ClassVar[str] = "Loss"
    shown: ClassVar[str] = "Exact match of variants of a loss beside the loss itself."
    usual: ClassVar[tuple[str, ...]] = ()
    rows: ClassVar[Mapping[str, str]] = {}

    def labels(self, run: Run) -> Mapping[str, str]:
        """The loss specs of the rows, in order, with their labels."""
        if self.rows:
            return self.rows
        others = {*TermsTable.rows, *KernelTable.rows}
        own = [loss for loss in loss_specs(run) if "[" in loss and loss not in others]
        own = [loss for loss in own if not is_tuned(loss) and "smmd[sigma=" not in loss]
        plain = [loss.partition("[")[0] for loss in own]
        return {REFERENCE: CE, **{x: loss_label(x) for x in loss_specs(run) if x in {*plain, *own}}}

    def variants(self, run: Run) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Cells and result frame of the rows."""
        labels = self.labels(run)
        usual = self.usual or [loss for loss in labels if "[" not in loss]
        return variants(run, labels, {*labels} - {*usual}, 1, self.published)

    def skip(self, run: Run) -> str | None:
        """At least one loss that is not usual must have results."""
        cells, data = self.variants(run)
        if cells.empty:
            return f"the run varies no {self.heading.lower()}"
        return "no variant has an accuracy yet" if data.empty else None

    def build(self, run: Run) -> Artefact:
        """One row a model, task and variant."""
        cells, data = self.variants(run)
        table = self._table(run, data[data["metric"] == EXACT], cells)
        words = caption(run, cells, self.shown, "Only seeds that every row has are compared.")
        data.attrs["published"] = [EXACT]
        return Artefact(words, table, data=to_wide(data, [EXACT]), notes=notes_of(table))

    def _table(self, run: Run, data: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
        rows: list[dict[str, str]] = []
        bold: list[tuple[int, str]] = []
        for pair in pairs(data):
            own, there = of_pair(data, pair), of_pair(cells, pair)
            model = " ".join(model_columns(pair[0], there["params"].iloc[0]).values())
            for loss, label in self.labels(run).items():
                here, lost = own[own["loss"] == loss], there[there["loss"] == loss]
                row = {"Model": model, "Task": pair[1], self.heading: label}
                if here.empty:
                    row[ACCURACY] = "not run" if lost.empty else why_missing(lost)
                else:
                    bold += [(len(rows), ACCURACY)] * bool(here["best"].any())
                    row[ACCURACY] = estimate(here, 1, interval=True)
                    row[delta(opponent(data))] = gain(here)
                    row[P_HOLM] = p_text(here["gain_p"].iloc[0])
                    row["Paper"] = number(here["published"].iloc[0])
                    row[TO_PAPER] = number(here["against_published"].mean(), 1, sign=True)
                rows.append(row)
        table, title = pd.DataFrame(rows).fillna(DASH), self.title
        if data["task"].nunique() == 1:
            table, title = table.drop(columns="Task"), f"{title}: {data['task'].iloc[0]}"
        if data["published"].isna().all():
            table = table.drop(columns=["Paper", TO_PAPER])
        table.attrs |= {"title": title, "bold": bold}
        return table


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
        "ce": CE,
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
        "ce": CE,
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

    def labels(self, run: Run) -> dict[str, str]:
        """CE, and the losses of the run that change the bandwidths alone, small sets first."""
        sets = scans(run).get(("smmd", "sigma"), {})
        ordered = sorted((len(values), values, loss) for loss, values in sets.items())
        named = {loss: f"{{{', '.join(map(spell, values))}}}" for _, values, loss in ordered}
        return {"ce": CE, **named}
