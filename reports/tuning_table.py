"""What tuning chose: the settings tried for each loss, and how the chosen ones validated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.publishing.style import loss_label
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
        if ends := at_the_ends(data):
            words += f" At an end of the values tried: {', '.join(ends)}."
        table = row_table(_rows(data), self.title)
        return Artefact(words, table, data=data.drop(columns="address"), notes=NOTES)


def _rows(data: pd.DataFrame) -> Iterator[dict[str, str]]:
    for (model, task, _), group in data.groupby(KEY, observed=True):
        head = row_head({"model": model, "task": task, "loss": group["untuned"].iloc[0]})
        settings = dict.fromkeys(group["text"])
        row = {**head, "Settings": str(len(settings)), "Tried": "; ".join(settings)}
        chosen = group[group["chosen"]]
        if chosen.empty:
            states = group["trial_status"].value_counts()
            lost = [s for s in ("failed", "skipped", "pending") if s in states]
            yield {**row, "Chosen": ", ".join(f"{states[s]} {s}" for s in lost) or DASH}
            continue
        metric = str(chosen["metric"].iloc[0])
        label = {m.name: m.label for m in metrics_of(str(task))}.get(metric, metric)
        value = estimate(chosen, 1 if "%" in label else 2, interval=True)
        yield {**row, "Chosen": _chosen(group), "Metric": label, "Validation": value}


def _chosen(group: pd.DataFrame) -> str:
    """`lambda=3 (4 of 5 seeds), lambda=1 (1 of 5)` of the trials of one loss."""
    seeds, counts = group["seed"].nunique(), group.loc[group["chosen"], "text"].value_counts()
    if seeds == 1:
        return str(counts.index[0])
    first, *others = [f"{text} ({count} of {seeds}" for text, count in counts.items()]
    return ", ".join([f"{first} seeds)", *(f"{other})" for other in others)])


def at_the_ends(data: pd.DataFrame) -> list[str]:
    """The losses whose chosen value is the smallest or largest of at least three that were tried,
    for at least half of the seeds: a better one may lie beyond."""
    found = []
    for (_, _, loss), group in data.groupby(KEY, observed=True):
        tried = pd.DataFrame([dict(p.split("=", 1) for p in t.split(",")) for t in group["text"]])
        for name, texts in tried.items():
            values = pd.to_numeric(texts, errors="coerce").set_axis(group.index)
            chosen = values[group["chosen"]]
            if values.nunique() < 3 or values.isna().any() or chosen.empty:
                continue
            ends = [e for e in (values.min(), values.max()) if 2 * (chosen == e).mean() >= 1]
            found += [f"{loss_label(str(loss))} {name}={end:g}" for end in ends]
    return [*dict.fromkeys(found)]
