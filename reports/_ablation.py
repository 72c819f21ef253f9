"""The paper's ablation tables: rows are variants of a loss, columns tasks.

Several models have a block each. A run with one task has a column for each quantity (value,
difference, test, paper), a run with several a row for each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.publishing.style import spaced
from smmd_bench.publishing.tables import DASH

from . import _values
from ._caption import (
    decoding_note,
    noise_note,
    sample_note,
    significance_note,
    spread_note,
    write_caption,
)
from ._cells import REFERENCE, measured, metrics_beside_published, why_missing
from ._panels import Pair, of_pair
from ._paper import reference
from ._setting import setting_note
from ._values import P_HOLM, TO_PAPER, delta
from ._variants import of_groups, of_shared_seeds
from ._verdicts import with_tests

ACCURACY, DIFFERENCE = "Acc (%)", delta(REFERENCE)
PAPER, VALUE = "Paper", "Value"
QUANTITIES = (ACCURACY, DIFFERENCE, P_HOLM, PAPER, TO_PAPER)
NOT_RUN = "not run"
BACKBONES = (
    "of Qwen2.5-1.5B (GSM8K, SVAMP, arithmetic) and Qwen2.5-VL-3B (Clock-Time, ChartQA), without "
    "seeds or intervals"
)


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
    meaning: ClassVar[str]
    usual: ClassVar[tuple[str, ...]]
    rows: ClassVar[Mapping[str, str]] = {}

    def labels(self, run: Run) -> Mapping[str, str]:
        """The loss specs of the rows, in order, with their labels."""
        return self.rows

    def skip(self, run: Run) -> str | None:
        """At least one loss that is not usual must have results."""
        if self._varied(run.cells[run.cells["loss"].isin([*self.labels(run)])]).empty:
            return self.unvaried()
        if self.data(run).empty:
            return f"no variant of the {self.heading.lower()} of smmd has an accuracy yet"
        return None

    def unvaried(self) -> str:
        """Why a run without a varied loss has no table."""
        return f"the run varies no {self.heading.lower()} of smmd"

    def build(self, run: Run) -> Artefact:
        """One row a variant; tasks are columns."""
        data = self.data(run)
        of_run = of_groups(self.cells(run), data)
        cells = of_shared_seeds(of_run)
        table = self._frame(run, data, cells)
        tasks = data["task"].unique()
        table.attrs["title"] = f"{self.title}: {tasks[0]}" if len(tasks) == 1 else self.title
        where, paper = reference(self.published), f"{reference(self.published)} is {BACKBONES}."
        if data["published_exact_match"].notna().any():
            paper = f"Paper: {where}, {BACKBONES}; {TO_PAPER}: {ACCURACY} minus that."
        caption = write_caption(
            run,
            cells,
            self.meaning,
            f"{decoding_note(run)} {ACCURACY} is exact match; a completion without a number counts "
            "as wrong.",
            spread_note(data),
            f"{DIFFERENCE}: paired difference on the same examples.",
            significance_note(data, REFERENCE),
            noise_note(data, REFERENCE),
            paper,
            setting_note(run, cells),
            sample=sample_note(run, cells, of_run),
        )
        return Artefact(table=table, data=data, **caption)

    def cells(self, run: Run) -> pd.DataFrame:
        """The cells of the rows, for the models and tasks that have a varied one."""
        known = run.cells[run.cells["loss"].isin([*self.labels(run)])]
        return of_groups(known, self._varied(known))

    def data(self, run: Run) -> pd.DataFrame:
        """One row a cell with an accuracy, in full precision; empty if no varied one has."""
        cells = measured(of_shared_seeds(self.cells(run)))
        if cells.empty:
            return cells
        metrics = ("exact_match", "parse_failure_rate")
        data = metrics_beside_published(run, cells, metrics, self.published, metrics[:1])
        data = data[data["exact_match_value"].notna()]
        data = of_groups(data, self._varied(data))
        return data if data.empty else with_tests(data, run.only(cells), metrics[:1])

    def _varied(self, cells: pd.DataFrame) -> pd.DataFrame:
        return cells[~cells["loss"].isin(self.usual)]

    def _frame(self, run: Run, data: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
        """One row a model and variant; with several tasks, one for each of its quantities."""
        tasks, models = (
            list(data[name].cat.remove_unused_categories().cat.categories)
            for name in ("task", "model")
        )
        kept = QUANTITIES if data["published_exact_match"].notna().any() else QUANTITIES[:3]
        best = {*data.loc[data["best"], ["model", "loss", "task"]].itertuples(index=False)}
        headings = {task: spaced(task) if len(tasks) > 1 else ACCURACY for task in tasks}
        found: list[dict[str, str]] = []
        bold: list[tuple[int, str]] = []
        for model, (loss, label) in product(models, self.labels(run).items()):
            params = run.cells.loc[run.cells["model"] == model, "params"].iloc[0]
            name = " ".join(_values.model_columns(model, params).values())
            head = {"Model": name, self.heading: label}
            texts = {task: _texts(data, cells, (model, task), loss) for task in tasks}
            bold += [(len(found), headings[task]) for task in tasks if (model, loss, task) in best]
            if len(tasks) == 1:
                found.append({**head, **{q: texts[tasks[0]][q] for q in kept}})
                continue
            for quantity in kept:
                values = {headings[task]: texts[task][quantity] for task in tasks}
                if quantity == ACCURACY or {*values.values()} != {DASH}:
                    found.append({**head, VALUE: quantity, **values})
        table = pd.DataFrame(found)
        table.attrs["bold"] = bold
        return table


def _texts(data: pd.DataFrame, cells: pd.DataFrame, pair: Pair, loss: str) -> dict[str, str]:
    """The quantities of one model, task and loss."""
    here, found = of_pair(cells, pair), of_pair(data[data["loss"] == loss], pair)
    if found.empty:
        lost = here[here["loss"] == loss]
        why = DASH if here.empty else NOT_RUN if lost.empty else why_missing(lost)
        return {**dict.fromkeys(QUANTITIES, DASH), ACCURACY: why}
    return {
        ACCURACY: _values.estimate(found, "exact_match_", 1, interval=True),
        DIFFERENCE: _values.gain(found, "exact_match_"),
        P_HOLM: _values.corrected_p(found, "exact_match_"),
        **_values.beside_paper(found, {"published_exact_match": PAPER}, reason=False),
    }
