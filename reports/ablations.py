"""Tables 5, 6 and 9 of the paper, and the other variants of a run: a row a model, task and variant.

`select_variants` selects the cells of `sweeps`, too: the models and tasks that vary something.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from smmd_bench.contracts import Artefact, ReportSkippedError, Run
from smmd_bench.plugin_system.parameters import is_tuned, spell, split_spec
from smmd_bench.publishing.style import loss_label, task_label
from smmd_bench.publishing.tables import DASH, number
from smmd_bench.results.baselines import REFERENCE

from ._paper import add_published
from ._results import (
    EXACT,
    PAIR,
    add_tests,
    explain_missing,
    find_opponent,
    join_results,
    list_pairs,
    select_measured,
    select_pair,
    select_rows,
    to_wide,
)
from ._text import (
    BEST,
    P_HOLM,
    TO_PAPER,
    describe_model,
    describe_noise_floor,
    drop_dashes,
    format_estimate,
    format_gain,
    format_p,
    make_artefact,
    name_difference,
)

ACCURACY, CE = "Acc (%)", "none (CE)"
METRICS = (EXACT, "parse_failure_rate")

Numbers = dict[str, tuple[float, ...]]
"""The number or numbers of a parameter, by loss spec."""


def list_scans(run: Run) -> dict[tuple[str, str], Numbers]:
    """By loss and parameter the specs that change no other one, with its number or numbers, such as
    (1, 2) of `smmd[sigma=1+2]`; the loss itself has its default."""
    cells = run.cells.drop_duplicates("loss").set_index("loss")
    scanned: dict[tuple[str, str], Numbers] = {}
    for spec in list_specs(run):
        if is_tuned(spec):
            continue

        # With two parameters changed a difference is of neither alone.
        name, parameters = split_spec(spec)
        if len(parameters) != 1:
            continue

        (parameter,) = parameters
        points = scanned.setdefault((name, parameter), {})
        for loss in (name, spec):
            # The column has the default where a spec does not name the parameter.
            value = cells[parameter].get(loss)
            numbers = () if pd.isna(value) else _numbers(str(value))
            # Parameters that are words, such as a kernel, make no axis.
            if numbers:
                points[loss] = numbers
    return scanned


def _numbers(text: str) -> tuple[float, ...]:
    try:
        # A set of values is spelled as a sum: 1+2+3.
        return tuple(map(float, text.split("+")))
    except ValueError:
        return ()


def list_specs(run: Run) -> list[str]:
    """The loss specs of a run in order; of completions made elsewhere none."""
    # There the losses are labels of files: a bracket in one names no parameter.
    if "predictions" in run.manifest:
        return []
    return [*map(str, run.cells["loss"].cat.categories)]


def select_varied(
    cells: pd.DataFrame, losses: Collection[str], varied: Collection[str], least: int
) -> pd.DataFrame:
    """The rows of these losses, for the models and tasks with at least so many varied ones."""
    rows = cells[cells["loss"].isin([*losses])]
    is_varied = rows["loss"].isin([*varied])

    # Others are missing in this column, which `nunique` does not count.
    varied_losses = rows["loss"].astype("object").where(is_varied)
    by_pair = varied_losses.groupby([rows["model"], rows["task"]])
    return rows[by_pair.transform("nunique") >= least]


def select_shared_seeds(cells: pd.DataFrame) -> pd.DataFrame:
    """For each model and task the cells of the seeds that all its losses have; all if none is."""
    losses_of_pair = cells.groupby(PAIR)["loss"].transform("nunique")
    by_seed = cells.groupby([*PAIR, "seed"])
    is_shared = by_seed["loss"].transform("nunique") == losses_of_pair

    # Without a seed that all have, unequal ones are better than an empty table.
    by_pair = is_shared.groupby([cells["model"], cells["task"]])
    return cells[is_shared | ~by_pair.transform("any")]


def select_variants(
    run: Run,
    losses: Collection[str],
    varied: Collection[str],
    least: int,
    table: str = "",
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The cells that `select_varied` gives, of the seeds that all losses have, and their result
    frame, which is empty if too few have an accuracy. `table` has their published values."""
    # Of unequal seeds a difference between rows would be one of seeds, too.
    cells = select_shared_seeds(select_varied(run.cells, losses, varied, least))
    with_results = select_measured(cells)
    if with_results.empty:
        return cells, with_results
    data = join_results(run, with_results, METRICS)
    data = add_published(data, run, with_results, table)

    # Some losses may have failed: of what is left, enough must have an accuracy.
    accuracies = select_rows(data, metric=EXACT).dropna(subset="value")
    data = data[data["address"].isin(accuracies["address"])]
    data = select_varied(data, losses, varied, least)
    if not data.empty:
        data = add_tests(data, run, [EXACT])

    pairs_with_data = data[PAIR].drop_duplicates()
    return cells.merge(pairs_with_data), data


@dataclass(frozen=True)
class Ablation:
    """Accuracy of variants that no other table of the paper has, with the difference to CE.

    `published` is its key in `paper.yaml`, `heading` what its rows vary, `rows` are its loss specs
    with their labels, `baselines` those of them that alone make no table.
    """

    name = "ablation"
    title = "Variants of the losses"
    paper = "not in the paper"
    published = ""
    heading = "Loss"
    caption_text = "Exact match of variants of a loss beside the loss itself."
    baselines: ClassVar[tuple[str, ...]] = ()
    rows: ClassVar[Mapping[str, str]] = {}

    def labels(self, run: Run) -> Mapping[str, str]:
        """The loss specs of the rows, in order, with their labels."""
        if self.rows:
            return self.rows
        specs = list_specs(run)
        variants = [loss for loss in specs if _is_only_here(loss)]

        # Variants stand beside the losses that they vary.
        plain = [loss.partition("[")[0] for loss in variants]
        labels = {REFERENCE: CE}
        for loss in specs:
            if loss in plain or loss in variants:
                labels[loss] = loss_label(loss)
        return labels

    def variants(self, run: Run) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Cells and result frame of the rows."""
        labels = self.labels(run)
        baselines = self.baselines or [loss for loss in labels if "[" not in loss]
        # Baselines are in other tables; one variant makes them worth repeating.
        varied = {*labels} - {*baselines}
        return select_variants(run, labels, varied, 1, self.published)

    def build(self, run: Run) -> Artefact:
        """One row a model, task and variant."""
        cells, data = self.variants(run)
        if cells.empty:
            raise ReportSkippedError(f"the run varies no {self.heading.lower()}")
        if data.empty:
            raise ReportSkippedError("no variant has an accuracy yet")
        exact = select_rows(data, metric=EXACT)
        table = self._table(run, exact, cells)
        noise_floor = describe_noise_floor(exact, REFERENCE)
        warning = f"Only seeds that every row has are compared. {noise_floor}".strip()

        # The paper prints accuracies of variants, and no parse failures.
        data.attrs["published"] = [EXACT]
        numbers = to_wide(data, [EXACT])
        return make_artefact(
            run, cells, self.caption_text, warning, table=table, data=numbers
        )

    def _table(self, run: Run, data: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
        rows: list[dict[str, str]] = []
        bold = []
        labels = self.labels(run)
        other = find_opponent(data)
        for pair in list_pairs(data):
            cells_of_pair = select_pair(cells, pair)
            model = describe_model(pair[0], cells_of_pair["params"].iloc[0])
            head = {"Model": " ".join(model.values()), "Task": task_label(pair[1])}

            # All rows of the paper stand in its order: one that the run lacks says so.
            for loss, label in labels.items():
                results = select_rows(select_pair(data, pair), loss=loss)
                if results["best"].any():
                    bold.append((len(rows), ACCURACY))
                lost_cells = select_rows(cells_of_pair, loss=loss)
                values = _values(results, lost_cells, other)
                rows.append({**head, self.heading: label, **values})

        table = self._prune(pd.DataFrame(rows).fillna(DASH), data)
        table.attrs |= {"bold": bold, "bold_means": BEST}
        return table

    def _prune(self, table: pd.DataFrame, data: pd.DataFrame) -> pd.DataFrame:
        """The table with its title, which names the task if there is one, without empty columns."""
        tasks = data["task"].unique()
        table = drop_dashes(table, ["Paper", TO_PAPER])
        if len(tasks) > 1:
            return table

        # One task needs no column, but must be named: tables are read alone.
        table = table.drop(columns="Task")
        table.attrs["title"] = f"{self.title}: {task_label(tasks[0])}"
        return table


def _is_only_here(loss: str) -> bool:
    """Whether a loss is a variant that no other table or sweep has."""
    # Bandwidths are in a table and a figure of their own, tuned losses in the tuning table.
    if "[" not in loss or is_tuned(loss) or "smmd[sigma=" in loss:
        return False
    return loss not in TermsTable.rows and loss not in KernelTable.rows


def _values(results: pd.DataFrame, cells: pd.DataFrame, other: str) -> dict[str, str]:
    """The accuracy of a loss with its difference to `other`, or why it has no result."""
    if results.empty:
        return {ACCURACY: "not run" if cells.empty else explain_missing(cells)}

    # Tests and published values are the same in the rows of all seeds.
    first = results.iloc[0]
    return {
        ACCURACY: format_estimate(results, 1, interval=True),
        name_difference(other): format_gain(results),
        P_HOLM: format_p(first["gain_p"]),
        "Paper": number(first["published"]),
        TO_PAPER: number(results["against_published"].mean(), 1, sign=True),
    }


class TermsTable(Ablation):
    """Accuracy with each term of SMMD on and off, by task, with the difference to CE."""

    name = "terms_table"
    title = "Effect of the MMD and smoothness terms"
    paper = "Table 5"
    published = "ablation"
    heading = "Terms"
    caption_text = (
        "Exact match of SMMD by its terms, a squared MMD (smmd[term=mmd]) and a smoothness term "
        "(smmd[term=smooth]); with neither it is CE."
    )
    baselines = ("ce", "smmd")
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
    caption_text = (
        "Exact match with the MMD term alone (smmd[term=mmd]), whose kernel is made from the "
        "distances between the values, from the values shuffled among the tokens "
        "(kernel=shuffled), or at random (kernel=random)."
    )
    baselines = ("ce", "smmd[term=mmd]")
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
    caption_text = (
        "Exact match of SMMD, whose kernel is the mean of Gaussian kernels of these bandwidths: "
        "{1, 2, 3} is smmd[sigma=1+2+3], and {2} the default."
    )
    baselines = ("ce", "smmd")

    def labels(self, run: Run) -> dict[str, str]:
        """CE, and the losses of the run that change the bandwidths alone, small sets first."""
        # The spec breaks ties of bandwidths that are equal but spelled in two ways.
        sets = list_scans(run).get(("smmd", "sigma"), {})
        ordered = sorted(sets, key=lambda loss: (len(sets[loss]), sets[loss], loss))
        labels = {"ce": CE}
        for loss in ordered:
            bandwidths = ", ".join(map(spell, sets[loss]))
            labels[loss] = f"{{{bandwidths}}}"
        return labels
