"""Table 10 of the paper: scale-error categories (Appendix C.7), by model, task and loss."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.publishing.style import loss_label, model_label
from smmd_bench.publishing.tables import DASH, number
from smmd_bench.results.baselines import REFERENCE
from smmd_bench.results.pairing import KEY, in_order, main_losses
from smmd_bench.scoring.categories import CATEGORIES, POWERS

from ._paper import find_published_beside
from ._results import (
    explain_missing,
    explain_no_numbers,
    list_numeric_tasks,
    select_measured,
    select_pair,
)
from ._text import select_notes, write_caption

SCALES = tuple(f"scale_x10^{k}" for k in POWERS)
ANY_SCALE, TOTAL, LEFT_OUT = "scale", "n", "left out"
_AFTER = CATEGORIES[CATEGORIES.index(SCALES[-1]) + 1 :]
ROWS = {
    "exact": "Exact",
    "sign_flip": "Sign flip",
    ANY_SCALE: "Scale ×10^k",
    **{n: f"of these k = {k:+d}".replace("-", "−") for n, k in zip(SCALES, POWERS, strict=True)},
    **{name: name.capitalize().replace("_", "-") for name in _AFTER},
    TOTAL: "Total",
}
"""The rows of the table by category, in the paper's order; `scale` is any k."""
LOSSES = 6
"""Columns of losses at most; the CSV of the data has all."""
SHOWN = (
    "Number of answers (mean over seeds) and share in percent, each in the first category that "
    "holds: exact; minus the answer, within 5 percent; its size times 10^k, within 5 percent; off "
    "by at most 1 or 1 percent; by at least 50 percent; the rest; no number. A CSV has all losses."
)


@dataclass(frozen=True)
class ScaleErrors:
    """How answers are wrong: counts and shares of the categories for every loss."""

    name = "scale_errors"
    title = "Scale-error categories"
    paper = "Table 10"

    def skip(self, run: Run) -> str | None:
        """Without scored answers to a numeric target there is nothing to count."""
        return explain_no_numbers(run)

    def build(self, run: Run) -> Artefact:
        """One row a model, task and category; one column a loss, then those of the paper."""
        has_numbers = run.cells["task"].isin(list_numeric_tasks(run))
        run = main_losses(run.only(run.cells[has_numbers]))
        data = count_categories(run)
        table = _make_table(data, run.cells)
        table.attrs["title"] = self.title
        return Artefact(
            write_caption(run, run.cells, SHOWN),
            table,
            data=data,
            notes=select_notes(table),
        )


def count_categories(run: Run) -> pd.DataFrame:
    """One row a model, task, loss and category, with `scale` (any k) and `n` (all) among them.

    count and left_out are means over the seeds: of the examples in the category, and of those that
    do not count at all since their target holds no number; share is in percent of n; published is
    the paper's count, where the setting is the same.
    """
    cells = select_measured(run.cells)
    counts = _average_counts(run, cells)
    long: Any = counts[[*ROWS]].stack()
    data: pd.DataFrame = long.reset_index(name="count")

    totals = counts[[TOTAL, LEFT_OUT]]
    totals = totals.rename(columns={LEFT_OUT: "left_out"})
    totals["seeds"] = _count_seeds(cells)
    # All rows of a loss repeat its totals, so that each row of the CSV can be read alone.
    data = data.join(totals, on=KEY)

    # Without any answer that counts there is no share.
    total = data.pop(TOTAL)
    data["share"] = 100 * data["count"] / total.where(total > 0)
    data["published"] = _find_published_counts(run, cells, data)
    columns = ["category", "count", "share", "left_out", "seeds", "published"]
    return in_order(data[[*KEY, *columns]], run.cells)


def _count_seeds(cells: pd.DataFrame) -> pd.Series[int]:
    return cells.groupby(KEY, observed=True)["seed"].nunique()


def _average_counts(run: Run, cells: pd.DataFrame) -> pd.DataFrame:
    """One row a model, task and loss, one column a category: answers of a seed, on average."""
    scores = run.read("scores", ["answer", "category"], cells["address"])
    is_counted = scores["answer"].notna()
    scores["category"] = scores["category"].where(is_counted, LEFT_OUT)
    groups = scores.groupby([*KEY, "category"], observed=True)

    # Categories that no answer is in count 0, and are not missing.
    sizes = groups.size().unstack(fill_value=0)
    sizes = sizes.reindex(columns=[*CATEGORIES, LEFT_OUT], fill_value=0)
    counts = sizes.div(_count_seeds(cells), axis=0)
    counts[ANY_SCALE] = counts[[*SCALES]].sum(axis=1)
    counts[TOTAL] = counts[[*CATEGORIES]].sum(axis=1)
    return counts


def _find_published_counts(run: Run, cells: pd.DataFrame, data: pd.DataFrame) -> pd.Series[float]:
    """The paper's count of each row of `data`; missing where the setting is another."""
    published: dict[Any, Mapping[str, float]] = {}
    # The seeds of a loss have one setting.
    for cell in cells.drop_duplicates(KEY).to_dict("records"):
        key = (cell["model"], cell["task"], cell["loss"])
        published[key] = find_published_beside(run, cell, "categories")

    counts = []
    for row in data.to_dict("records"):
        key = (row["model"], row["task"], row["loss"])
        counts.append(published[key].get(row["category"]))
    return pd.Series(counts, data.index, dtype="float64")


def _make_table(data: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
    """A column a loss, then the paper's; a loss without a result has the reason in its first row.

    Powers of ten that no answer is off by have no row.
    """
    categories = _select_categories(data)
    ours = data[data["category"].isin(categories)]
    ours = ours.assign(column=ours["loss"].astype("str").map(loss_label))
    paper = _make_paper_columns(ours)

    # A categorical keeps the paper's order of the rows, which is not that of the alphabet.
    entries = pd.concat([ours, paper], ignore_index=True)
    entries["text"] = [_format_count(row) for row in entries.to_dict("records")]
    entries["category"] = pd.Categorical(entries["category"], categories=categories)
    table = entries.pivot(
        index=["model", "task", "category"],
        columns="column",
        values="text",
    )

    labels = _select_columns(cells)
    table = table.reindex(columns=[*labels.values(), *paper["column"].unique()])
    table = table.astype("object").fillna(DASH).reset_index()
    _write_reasons(table, cells, labels)
    return _name_rows(table)


def _select_categories(data: pd.DataFrame) -> list[str]:
    largest = data.groupby("category")[["count", "published"]].max().max(axis=1)
    return [name for name in ROWS if name not in SCALES or largest[name] > 0]


def _make_paper_columns(data: pd.DataFrame) -> pd.DataFrame:
    """The paper's counts as rows of columns of their own, where it has any."""
    # The total is the last category.
    total = data.groupby(KEY, observed=True)["published"].transform("last")
    paper = data.assign(
        column="Paper " + data["column"],
        count=data["published"],
        share=100 * data["published"] / total,
        seeds=1,
    )
    is_filled = paper.groupby("column")["count"].transform("count") > 0
    return paper[is_filled]


def _select_columns(cells: pd.DataFrame) -> dict[str, str]:
    """The losses that have a column, in the run's order, with their headings."""
    losses = [*map(str, cells["loss"].cat.categories)]

    # Cross-entropy and SMMD come first, variants and the untuned model last.
    first = (REFERENCE, "smmd")
    ranked = sorted(losses, key=lambda loss: (loss not in first, loss == "base", "[" in loss))
    chosen = ranked[:LOSSES]
    return {loss: loss_label(loss) for loss in losses if loss in chosen}


def _write_reasons(table: pd.DataFrame, cells: pd.DataFrame, labels: Mapping[str, str]) -> None:
    """Put why a loss has no result into its first row of a model and task."""
    # The pivot has cells with a result alone.
    for (model, task, loss), group in cells.groupby(KEY, observed=True):
        reason = explain_missing(group)
        if reason and loss in labels:
            first_row = select_pair(table, (str(model), str(task))).index[0]
            table.loc[first_row, labels[str(loss)]] = reason


def _name_rows(table: pd.DataFrame) -> pd.DataFrame:
    headings = {"model": "Model", "task": "Task", "category": "Category"}
    table = table.rename(columns=headings)
    models = [model_label(str(model)) for model in table["Model"]]
    categories = table["Category"].astype("str").map(ROWS)
    return table.assign(Model=models, Category=categories)


def _format_count(row: Mapping[Hashable, Any]) -> str:
    """`726 (55.04)`: a count and its share of the total; the total stands alone."""
    # Of one seed a count is whole; a mean over several is not.
    text = number(row["count"], int(row["seeds"] > 1))
    if text == DASH or row["category"] == TOTAL or pd.isna(row["share"]):
        return text
    return f"{text} ({row['share']:.2f})"
