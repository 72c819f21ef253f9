"""What tuning chose: the settings tried for each loss, and how the chosen ones validated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.publishing.tables import DASH

from ._cells import KEY, metrics_of
from ._text import NOTES, estimate, named_seeds, row_head, row_table

SHOWN = (
    "The setting that validates best for each seed, without a test example. Validation is of the "
    "best of several settings, and so too high."
)


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
        sizes = sorted(data["n"].dropna().unique())
        n = " or ".join(f"{int(size):,}" for size in sizes) or "0"
        words = f"{SHOWN} n = {n} validation examples; {named_seeds(data)}."
        table = row_table(_rows(data), self.title)
        return Artefact(words, table, data=data.drop(columns="address"), notes=NOTES)


def _rows(data: pd.DataFrame) -> Iterator[dict[str, str]]:
    for (model, task, _), group in data.groupby(KEY, observed=True):
        head = row_head({"model": model, "task": task, "loss": group["untuned"].iloc[0]})
        settings = dict.fromkeys(group["text"])
        row = {**head, "Settings": str(len(settings)), "Tried": "; ".join(settings)}
        chosen = group[group["chosen"]]
        if chosen.empty:
            yield {**row, "Chosen": DASH}
            continue
        seeds, counts = group["seed"].nunique(), chosen["text"].value_counts()
        said = ", ".join(f"{text} ({n} of {seeds})" for text, n in counts.items())
        said = said.replace(")", " seeds)", 1) if seeds > 1 else str(counts.index[0])
        metric = str(chosen["metric"].iloc[0])
        label = {m.name: m.label for m in metrics_of(str(task))}.get(metric, metric)
        value = estimate(chosen, 1 if "%" in label else 2, interval=True)
        yield {**row, "Chosen": said, "Metric": label, "Validation": value}
