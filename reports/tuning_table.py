"""What tuning chose: the settings tried for each loss, and how the chosen ones validated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.publishing.tables import DASH

from ._caption import named_seeds, split_caption, when
from ._cells import metrics_of
from ._columns import row_head, row_table
from ._tuning import LOSS, at_the_ends, budgets, chosen_settings
from ._values import estimate

STATES = ("failed", "skipped", "pending")


@dataclass(frozen=True)
class TuningTable:
    """One row a model, task and loss that was tuned; the CSV has every trial."""

    name: ClassVar[str] = "tuning_table"
    title: ClassVar[str] = "What tuning chose"
    paper: ClassVar[str] = "not in the paper"
    order: ClassVar[int] = 130

    def skip(self, run: Run) -> str | None:
        """A tuned loss is needed."""
        return "the run has no tuned loss" if run.tuning.empty else None

    def build(self, run: Run) -> Artefact:
        """The settings of each loss, those that were chosen, and the best validation value."""
        data = run.tuning
        table = row_table(_rows(data), self.title)
        one, several = (data["seed"].nunique() == 1), data["seed"].nunique() > 1
        caption = split_caption(
            f"Of {budgets(data)}, the one that validates best for each seed; no test example is "
            "read for it.",
            "Validation: of the chosen setting, and so the best of several: it is too high. The "
            "gain from tuning is the difference between the rows of a loss in the tables of the "
            "test split.",
            when(one, "Brackets: 95 % intervals, percentile bootstrap over the examples."),
            when(several, "±: standard deviation over training seeds."),
            "Ties go to the setting that is named first.",
            at_the_ends(data),
            more=f"n = {_sizes(data)} validation examples; {named_seeds(data)}.",
        )
        return Artefact(table=table, data=data.drop(columns="address"), **caption)


def _rows(data: pd.DataFrame) -> Iterator[dict[str, str]]:
    for (model, task, _), group in data.groupby(LOSS, observed=True):
        head = row_head({"model": model, "task": task, "loss": group["untuned"].iloc[0]})
        settings = list(dict.fromkeys(group["text"]))
        row = {**head, "Settings": str(len(settings)), "Tried": "; ".join(settings)}
        row["Chosen"] = _why_not(group) or chosen_settings(group)
        chosen = group[group["chosen"]]
        if chosen.empty:
            yield row
            continue
        metric = str(chosen["metric"].iloc[0])
        labels = {m.name: m.label for m in metrics_of(str(task))}
        row["Metric"] = labels.get(metric, metric)
        digits = 1 if "%" in row["Metric"] else 2
        yield {**row, "Validation": estimate(chosen, "", digits, interval=True)}


def _why_not(group: pd.DataFrame) -> str:
    """Why nothing is chosen for any seed; empty where something is."""
    if group["chosen"].any():
        return ""
    counts = group["trial_status"].value_counts()
    return ", ".join(f"{counts[state]} {state}" for state in STATES if state in counts) or DASH


def _sizes(data: pd.DataFrame) -> str:
    sizes = sorted(data["n"].dropna().unique())
    return " or ".join(f"{int(size):,}" for size in sizes) or "0"
