"""Table 10 of the paper: scale-error categories (Appendix C.7), by model, task and loss."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.publishing.style import loss_label, model_label
from smmd_bench.publishing.tables import DASH, number
from smmd_bench.results.opponents import REFERENCE
from smmd_bench.results.verdict import KEY, in_order, main_losses
from smmd_bench.scoring.categories import CATEGORIES, POWERS

from ._cells import measured, numeric_tasks, of_pair, why_missing, why_no_numbers
from ._paper import published_beside
from ._text import caption, notes_of

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

    name: ClassVar[str] = "scale_errors"
    title: ClassVar[str] = "Scale-error categories"
    paper: ClassVar[str] = "Table 10"

    def skip(self, run: Run) -> str | None:
        """Without scored answers to a numeric target there is nothing to count."""
        return why_no_numbers(run)

    def build(self, run: Run) -> Artefact:
        """One row a model, task and category; one column a loss, then those of the paper."""
        run = main_losses(run.only(run.cells[run.cells["task"].isin(numeric_tasks(run))]))
        data = category_counts(run)
        table = _table(data, run.cells)
        table.attrs["title"] = self.title
        return Artefact(caption(run, run.cells, SHOWN), table, data=data, notes=notes_of(table))


def category_counts(run: Run) -> pd.DataFrame:
    """One row a model, task, loss and category, with `scale` (any k) and `n` (all) among them.

    count and left_out are means over the seeds: of the examples in the category, and of those that
    do not count at all since their target holds no number; share is in percent of n; published is
    the paper's count, where the setting is the same.
    """
    cells = measured(run.cells)
    scores = run.read("scores", ["answer", "category"], cells["address"])
    scores["category"] = scores["category"].where(scores["answer"].notna(), LEFT_OUT)
    wide = scores.groupby([*KEY, "category"], observed=True).size().unstack(fill_value=0)
    wide = wide.reindex(columns=[*CATEGORIES, LEFT_OUT], fill_value=0)
    seeds = cells.groupby(KEY, observed=True)["seed"].nunique()
    wide = wide.div(seeds, axis=0)
    wide[ANY_SCALE], wide[TOTAL] = wide[[*SCALES]].sum(axis=1), wide[[*CATEGORIES]].sum(axis=1)
    long: Any = wide[[*ROWS]].stack()
    data: pd.DataFrame = long.reset_index(name="count")
    shared = wide[[TOTAL, LEFT_OUT]].rename(columns={LEFT_OUT: "left_out"}).join(seeds)
    data = data.join(shared.rename(columns={"seed": "seeds"}), on=KEY)
    data["share"] = 100 * data["count"] / data.pop(TOTAL).where(lambda n: n > 0)
    firsts = cells.drop_duplicates(KEY).to_dict("records")
    paper = {tuple(c[k] for k in KEY): published_beside(run, c, "categories") for c in firsts}
    rows = data[[*KEY, "category"]].itertuples(index=False)
    data["published"] = [paper[tuple(key)].get(category) for *key, category in rows]
    data = data.astype({"published": "float64"})
    columns = ["category", "count", "share", "left_out", "seeds", "published"]
    return in_order(data[[*KEY, *columns]], run.cells)


def _table(data: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
    """A column a loss, then the paper's; a loss without a result has the reason in its first row.

    Powers of ten that no answer is off by have no row.
    """
    most = data.groupby("category")[["count", "published"]].max().max(axis=1)
    shown = [category for category in ROWS if category not in SCALES or most[category] > 0]
    data = data[data["category"].isin(shown)]
    labels = data["loss"].astype("str").map(loss_label)
    total = data.groupby(KEY, observed=True)["published"].transform("last")
    share = 100 * data["published"] / total
    theirs = data.assign(column="Paper " + labels, count=data["published"], share=share, seeds=1)
    theirs = theirs[theirs.groupby("column")["count"].transform("count") > 0]
    both = pd.concat([data.assign(column=labels), theirs], ignore_index=True)
    both["text"] = [_text(row) for row in both.to_dict("records")]
    both["category"] = pd.Categorical(both["category"], categories=shown)
    table = both.pivot(index=["model", "task", "category"], columns="column", values="text")
    every = {str(loss): loss_label(str(loss)) for loss in cells["loss"].cat.categories}
    first = (REFERENCE, "smmd")
    ranked = sorted(every, key=lambda loss: (loss not in first, loss == "base", "[" in loss))
    kept = [label for loss, label in every.items() if loss in ranked[:LOSSES]]
    table = table.reindex(columns=[*kept, *theirs["column"].unique()]).astype("object")
    table = table.fillna(DASH).reset_index()
    for (model, task, loss), own in cells.groupby(KEY, observed=True):
        if (why := why_missing(own)) and every[str(loss)] in kept:
            table.loc[of_pair(table, (str(model), str(task))).index[0], every[str(loss)]] = why
    table = table.rename(columns={"model": "Model", "task": "Task", "category": "Category"})
    models = [model_label(str(model)) for model in table["Model"]]
    return table.assign(Model=models, Category=table["Category"].astype("str").map(ROWS))


def _text(row: Mapping[Hashable, Any]) -> str:
    """`726 (55.04)`: a count and its share of the total; the total stands alone."""
    text = number(row["count"], int(row["seeds"] > 1))
    alone = text == DASH or row["category"] == TOTAL or pd.isna(row["share"])
    return text if alone else f"{text} ({row['share']:.2f})"
