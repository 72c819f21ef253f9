"""Table 10 of the paper: scale-error categories (Appendix C.7), by model, task and loss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.publishing.style import loss_label, model_label, task_label
from smmd_bench.publishing.tables import DASH, number
from smmd_bench.results.baselines import REFERENCE
from smmd_bench.results.pairing import KEY, drop_short_variants, order_losses
from smmd_bench.scoring.categories import CATEGORIES, POWERS

from ._paper import find_published_beside
from ._results import (
    explain_missing,
    list_pairs,
    require_numbers,
    select_measured,
    select_pair,
    select_rows,
)
from ._text import drop_dashes_below, make_artefact

SCALES = {f"scale_x10^{k}": f"of these k = {k:+d}".replace("-", "−") for k in POWERS}
ANY_SCALE, TOTAL, LEFT_OUT = "scale", "n", "left out"
# The rows of the scales stand below their sum, and the categories that follow below them.
_AFTER = CATEGORIES[CATEGORIES.index([*SCALES][-1]) + 1 :]
ROWS = {
    "exact": "Exact",
    "sign_flip": "Sign flip",
    ANY_SCALE: "Scale ×10^k",
    **SCALES,
    **{name: name.capitalize().replace("_", "-") for name in _AFTER},
    TOTAL: "Total",
}
"""The rows of the table by category, in the paper's order; `scale` is any k."""
LOSSES = 6
"""Columns of losses at most; the CSV of the data has all."""
SHOWN = (
    "Number of answers (mean over seeds) and share in percent, each in the first category that "
    "holds: exact; minus the answer, within 5 percent; its size times 10^k, within 5 percent; off "
    "by at most 1 or 1 percent; by at least 50 percent; the rest; no number. The CSV of the data "
    "has all losses."
)


@dataclass(frozen=True)
class ScaleErrors:
    """How answers are wrong: counts and shares of the categories for every loss."""

    name = "scale_errors"
    title = "Scale-error categories"
    paper = "Table 10"

    def build(self, run: Run) -> Artefact:
        """One row a model, task and category; one column a loss, then those of the paper."""
        has_numbers = run.cells["task"].isin(require_numbers(run))
        run = drop_short_variants(run.only(run.cells[has_numbers]))
        data = count_categories(run)
        table = _make_table(data, run.cells)
        return make_artefact(run, run.cells, SHOWN, table=table, data=data)


def count_categories(run: Run) -> pd.DataFrame:
    """One row a model, task, loss and category, with `scale` (any k) and `n` (all) among them.

    count and left_out are means over the seeds: of the examples in the category, and of those that
    do not count at all since their target holds no number; share is in percent of n; published is
    the paper's count, where the setting is the same.
    """
    cells = select_measured(run.cells)
    seeds = cells.groupby(KEY)["seed"].nunique()
    counts = _average_counts(run, cells, seeds)
    long: Any = counts[[*ROWS]].stack()
    data: pd.DataFrame = long.reset_index(name="count")

    totals = counts[[TOTAL, LEFT_OUT]]
    totals = totals.rename(columns={LEFT_OUT: "left_out"})
    totals["seeds"] = seeds
    # All rows of a loss repeat its totals, so that each row of the CSV can be read alone.
    data = data.join(totals, on=KEY)

    # Without any answer that counts there is no share.
    total = data.pop(TOTAL)
    total = total.where(total > 0)
    data["share"] = 100 * data["count"] / total
    data["published"] = _find_published_counts(run, cells, data)
    columns = ["category", "count", "share", "left_out", "seeds", "published"]
    data = data[[*KEY, *columns]]
    return order_losses(data, run.cells)


def _average_counts(
    run: Run, cells: pd.DataFrame, seeds: pd.Series[int]
) -> pd.DataFrame:
    """One row a model, task and loss, one column a category: answers of a seed, on average."""
    scores = run.read("scores", ["answer", "category"], cells["address"])
    is_counted = scores["answer"].notna()
    scores["category"] = scores["category"].where(is_counted, LEFT_OUT)
    groups = scores.groupby([*KEY, "category"])

    # Categories that no answer is in count 0, and are not missing.
    sizes = groups.size().unstack(fill_value=0)
    every_category = [*CATEGORIES, LEFT_OUT]
    sizes = sizes.reindex(columns=every_category, fill_value=0)

    counts = sizes.div(seeds, axis=0)
    of_scales = counts[[*SCALES]]
    counts[ANY_SCALE] = of_scales.sum(axis=1)

    # Answers that are left out are in no share.
    of_categories = counts[[*CATEGORIES]]
    counts[TOTAL] = of_categories.sum(axis=1)
    return counts


def _find_published_counts(
    run: Run, cells: pd.DataFrame, data: pd.DataFrame
) -> pd.Series[float]:
    """The paper's count of each row of `data`; missing where the setting is another."""
    published = {}
    # The seeds of a loss have one setting.
    one_a_loss = cells.drop_duplicates(KEY)
    for cell in one_a_loss.to_dict("records"):
        key = (cell["model"], cell["task"], cell["loss"])
        published[key] = find_published_beside(run, cell, "categories")

    counts = []
    columns = data[[*KEY, "category"]]
    rows = columns.itertuples(index=False, name=None)
    for model, task, loss, category in rows:
        counts.append(published[model, task, loss].get(category))
    return pd.Series(counts, data.index, dtype="float64")


def _make_table(data: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
    """A column a loss, then the paper's; a loss without a result has the reason in its first row.

    Powers of ten that no answer is off by have no row.
    """
    # The total, which is the last category, has no share of itself.
    is_part = data["category"] != TOTAL
    total = data.groupby(KEY)["published"].transform("last")
    data = data.assign(
        count_share=data["share"].where(is_part),
        published_share=(100 * data["published"] / total).where(is_part),
    )

    rows = []
    labels = _select_columns(cells)
    categories = _select_categories(data)
    for pair in list_pairs(data):
        cells_of_pair = select_pair(cells, pair)
        reasons = {}
        for loss in labels:
            cells_of_loss = select_rows(cells_of_pair, loss=loss)
            reasons[loss] = explain_missing(cells_of_loss) or DASH

        lines = select_pair(data, pair)
        for category in categories:
            head = {
                "Model": model_label(pair[0]),
                "Task": task_label(pair[1]),
                "Category": ROWS[category],
            }
            by_loss = select_rows(lines, category=category).set_index("loss")
            entries = by_loss.to_dict("index")
            rows.append(head | _make_row(entries, labels, reasons))
            # A reason is read once, in the first row of its column.
            reasons = dict.fromkeys(labels, DASH)
    table = drop_dashes_below(pd.DataFrame(rows).fillna(DASH), "Paper")
    # Every loss says more than the untuned model does.
    table.attrs["optional"] = [loss_label("base")]
    return table


def _make_row(
    entries: Mapping[Any, Any], labels: Mapping[str, str], reasons: Mapping[str, str]
) -> dict[str, str]:
    """The cells of a category, of which `entries` has the numbers by loss."""
    row = {}
    for loss, label in labels.items():
        row[label] = reasons[loss]
        if loss in entries:
            row[label] = _format_count(entries[loss], "count")

    # The paper's columns follow all of ours.
    for loss, entry in entries.items():
        row[f"Paper {loss_label(str(loss))}"] = _format_count(entry, "published")
    return row


def _select_categories(data: pd.DataFrame) -> list[str]:
    largest = data.groupby("category")[["count", "published"]].max().max(axis=1)
    return [name for name in ROWS if name not in SCALES or largest[name] > 0]


def _select_columns(cells: pd.DataFrame) -> dict[str, str]:
    """The losses that have a column, in the run's order, with their headings."""
    losses = [*map(str, cells["loss"].cat.categories)]

    # Cross-entropy and SMMD come first, variants and the untuned model last.
    first = (REFERENCE, "smmd")
    ranked = sorted(
        losses, key=lambda loss: (loss not in first, loss == "base", "[" in loss)
    )
    chosen = ranked[:LOSSES]
    return {loss: loss_label(loss) for loss in losses if loss in chosen}


def _format_count(entry: Mapping[Any, Any], column: str) -> str:
    """`726 (55.04)`: a count and its share of the total; the total stands alone."""
    # Of one seed, and in the paper, a count is whole; a mean over several seeds is not.
    is_mean = column == "count" and entry["seeds"] > 1
    text = number(entry[column], int(is_mean))
    share = entry[f"{column}_share"]
    return text if text == DASH or pd.isna(share) else f"{text} ({share:.2f})"
