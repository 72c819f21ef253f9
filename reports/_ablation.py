"""What the paper's ablation tables share: rows are variants of a loss, columns tasks.

Each value has its interval, the difference to cross-entropy with a corrected test, and the paper's
value where the setting is the paper's. Several models: a block each. Where a run has one task the
columns are what is told of it; where it has several, that goes in rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from smmd_bench.contracts import Artefact
from smmd_bench.publishing.style import (
    loss_label,
    spaced,
)
from smmd_bench.publishing.tables import DASH

from ._cells import (
    P_HOLM,
    REFERENCE,
    TO_PAPER,
    beside_paper,
    corrected_p,
    decoding,
    difference_to,
    estimate,
    measured,
    metrics_beside_published,
    missing_note,
    model_columns,
    why_missing,
)
from ._paper import reference
from ._sample import sample_note
from ._setting import setting_note
from ._significance import significance_note, with_tests
from ._variants import of_groups, of_shared_seeds

if TYPE_CHECKING:
    from smmd_bench.contracts import Run

ACCURACY, DIFFERENCE = "Acc (%)", "Δ to CE"
PAPER, VALUE = "Paper", "Value"
NOT_RUN = "not run"
BACKBONES = (
    "of Qwen2.5-1.5B (GSM8K, SVAMP, arithmetic) and Qwen2.5-VL-3B (Clock-Time, ChartQA), without "
    "seeds or intervals"
)


@dataclass(frozen=True)
class Ablation:
    """What differs between the tables.

    `table` is its key in `paper.yaml`, `heading` what its rows vary, `meaning` a sentence on them,
    `usual` the rows that other studies have as well: they alone make no table.
    """

    table: str
    heading: str
    meaning: str
    usual: tuple[str, ...]

    def skip(self, run: Run, rows: Mapping[str, str]) -> str | None:
        """Why there is no table of these rows; None: there is one."""
        varied = run.cells[run.cells["loss"].isin([r for r in rows if r not in self.usual])]
        if varied.empty:
            return f"the run varies no {self.heading.lower()} of smmd"
        if self.data(run, rows).empty:
            return f"no variant of the {self.heading.lower()} of smmd has an accuracy yet"
        return None

    def cells(self, run: Run, rows: Mapping[str, str]) -> pd.DataFrame:
        """The cells of the rows, for the models and tasks that have a varied one."""
        known = run.cells[run.cells["loss"].isin(list(rows))]
        return of_groups(known, known[~known["loss"].isin(self.usual)])

    def data(self, run: Run, rows: Mapping[str, str]) -> pd.DataFrame:
        """One row a cell with an accuracy, in full precision; empty if no varied one has."""
        cells = measured(of_shared_seeds(self.cells(run, rows)))
        if cells.empty:
            return cells
        metrics = ("exact_match", "parse_failure_rate")
        data = metrics_beside_published(run, cells, metrics, self.table, ["exact_match"])
        data = data[data["exact_match_value"].notna()]
        data = of_groups(data, data[~data["loss"].isin(self.usual)])
        return data if data.empty else with_tests(data)

    def artefact(self, run: Run, title: str, rows: Mapping[str, str]) -> Artefact:
        """The table; `rows` names the loss specs that it shows, in order."""
        data = self.data(run, rows)
        of_run = of_groups(self.cells(run, rows), data)
        cells = of_shared_seeds(of_run)
        tasks = [task for task in data["task"].cat.categories if (data["task"] == task).any()]
        lines = [
            {
                "model": model,
                "loss": loss,
                "task": task,
                **_quantities(data, cells, model, task, loss),
            }
            for model in data["model"].cat.categories
            if (data["model"] == model).any()
            for loss in rows
            for task in tasks
        ]
        table = self._frame(lines, rows, run, tasks)
        table.attrs["title"] = f"{title}: {tasks[0]}" if len(tasks) == 1 else title
        return Artefact(caption=self._caption(run, data, cells, of_run), table=table, data=data)

    def _frame(
        self,
        lines: list[dict[str, str]],
        rows: Mapping[str, str],
        run: Run,
        tasks: list[str],
    ) -> pd.DataFrame:
        """The lines as they are of one task; of several, one row a line's quantity."""
        params = run.cells.drop_duplicates("model").set_index("model")["params"]
        quantities = [ACCURACY, DIFFERENCE, P_HOLM, PAPER, TO_PAPER]
        if all(line[PAPER] == DASH for line in lines):
            quantities = quantities[:3]
        found: list[dict[str, str]] = []
        bold: list[tuple[int, str]] = []
        for model in dict.fromkeys(line["model"] for line in lines):
            name = " ".join(model_columns(model, params[model]).values())
            for loss, label in rows.items():
                head = {"Model": name, self.heading: label}
                here = {x["task"]: x for x in lines if (x["model"], x["loss"]) == (model, loss)}
                best = [task for task in tasks if here[task]["best"]]
                if len(tasks) == 1:
                    bold += [(len(found), ACCURACY)] * len(best)
                    found.append({**head, **{q: here[tasks[0]][q] for q in quantities}})
                    continue
                bold += [(len(found), spaced(task)) for task in best]
                for quantity in quantities:
                    texts = {spaced(task): here[task][quantity] for task in tasks}
                    if quantity == ACCURACY or {*texts.values()} != {DASH}:
                        found.append({**head, VALUE: quantity, **texts})
        table = pd.DataFrame(found)
        table.attrs["bold"] = bold
        return table

    def _caption(
        self,
        run: Run,
        data: pd.DataFrame,
        cells: pd.DataFrame,
        of_run: pd.DataFrame,
    ) -> str:
        several = data.groupby(["model", "task", "loss"], observed=True).size().max() > 1
        of_seeds = " and seed" if several else ""
        parts = [
            self.meaning,
            decoding(run),
            f"{ACCURACY} is exact match; a completion without a number counts as wrong.",
            sample_note(run, of_groups(cells, data), of_run),
            "±: standard deviation over training seeds."
            if several
            else "Brackets: 95 % intervals, percentile bootstrap over the test examples.",
            f"{DIFFERENCE}: paired difference on the same examples{of_seeds}.",
            significance_note(REFERENCE, several=several)
            + ("" if data["best"].any() else " Nothing here is."),
        ]
        where = reference(self.table)
        if data["published_exact_match"].notna().any():
            parts.append(f"Paper: {where}, {BACKBONES}; {TO_PAPER}: {ACCURACY} minus that.")
        else:
            parts.append(f"{where} is {BACKBONES}.")
        return " ".join(parts) + setting_note(run, of_groups(cells, data)) + missing_note(cells)


def _quantities(
    data: pd.DataFrame, cells: pd.DataFrame, model: str, task: str, loss: str
) -> dict[str, str]:
    """What is told of one model, task and loss; `best` is empty if it is not."""

    def of(frame: pd.DataFrame) -> pd.DataFrame:
        same = (frame["model"] == model) & (frame["task"] == task) & (frame["loss"] == loss)
        return frame[same]

    found, there = of(data), of(cells)
    texts = dict.fromkeys((ACCURACY, DIFFERENCE, P_HOLM, PAPER, TO_PAPER), DASH) | {"best": ""}
    if found.empty:
        others = cells[(cells["model"] == model) & (cells["task"] == task)]
        if len(others):
            texts[ACCURACY] = NOT_RUN if there.empty else why_missing(there)
        return texts
    first = found.iloc[0]
    texts[ACCURACY] = estimate(found, "exact_match_", 1, interval=True)
    texts[DIFFERENCE] = difference_to(found, REFERENCE)[f"Δ to {loss_label(REFERENCE)}"]
    texts |= corrected_p(found) | beside_paper(found, {"exact_match": PAPER})
    return {**texts, "best": "yes" if first["best"] else ""}
