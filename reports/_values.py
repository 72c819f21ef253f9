"""The values of a table as text: a metric, its difference to cross-entropy, what is published."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from smmd_bench.publishing import tables
from smmd_bench.publishing.style import loss_label, model_label
from smmd_bench.publishing.tables import DASH, number, with_deviation, with_interval
from smmd_bench.scoring.statistics import over_seeds

from ._cells import is_reference
from ._paper import paper_model

P_HOLM, TO_PAPER = "p (Holm)", "Δ to paper"


def model_columns(model: str, params: Any) -> dict[str, str]:
    """Name and size of a model: as the paper prints them, where it is one of the paper's."""
    known = paper_model(model)
    if known:
        return {"Model": known.name, "Params": known.params}
    size = DASH if pd.isna(params) else tables.count(int(params))
    return {"Model": model_label(model), "Params": size}


def mean_over_seeds(values: pd.Series[float], digits: int, *, sign: bool = False) -> str:
    """`43.4 ± 0.5` of the values that exist; a dash where none does."""
    found = [float(value) for value in values.dropna()]
    return with_deviation(*over_seeds(found), digits, sign=sign) if found else DASH


def estimate(cells: pd.DataFrame, prefix: str, digits: int, *, interval: bool) -> str:
    """A metric of one model, task and loss: over seeds mean ± deviation, else with its interval.

    `prefix` stands before `value`, `low` and `high` in the names of the columns.
    """
    first = cells.iloc[0]
    if len(cells) > 1:
        return mean_over_seeds(cells[f"{prefix}value"], digits)
    if interval:
        bounds = (first[f"{prefix}low"], first[f"{prefix}high"])
        return with_interval(first[f"{prefix}value"], *bounds, digits)
    return number(first[f"{prefix}value"], digits)


def difference_to(cells: pd.DataFrame, other: str) -> str:
    """The paired difference of a loss to `other`; a dash if no cell was compared with it."""
    compared = cells[is_reference(cells["against_loss"], other)]
    if compared.empty:
        return DASH
    first = compared.iloc[0]
    if len(cells) > 1:
        return mean_over_seeds(compared["difference"], 1, sign=True)
    bounds = (first["difference_low"], first["difference_high"])
    return with_interval(first["difference"], *bounds, 1, sign=True)


def corrected_p(cells: pd.DataFrame) -> str:
    """The p-value of a model, task and loss, as `with_tests` has corrected it."""
    p = cells["p_holm"].iloc[0]
    return DASH if pd.isna(p) else tables.p_value(p)


def delta(other: str) -> str:
    """The heading of a difference: `Δ to CE`."""
    return f"Δ to {loss_label(other)}"


def beside_paper(
    cells: pd.DataFrame, headings: Mapping[str, str], *, reason: bool = True
) -> dict[str, str]:
    """The published values (columns `published...`, with their headings), and how far the mean of
    the first is from its own; where there is none, the `reason` is that its setting is another."""
    first, *_ = headings
    row = {heading: number(cells[name].iloc[0]) for name, heading in headings.items()}
    if reason and cells[first].isna().iloc[0]:
        row[headings[first]] = cells["other_setting"].iloc[0] or DASH
    return {**row, TO_PAPER: number(cells[f"against_{first}"].mean(), 1, sign=True)}


def without_paper(
    table: pd.DataFrame, data: pd.DataFrame, headings: Mapping[str, str]
) -> pd.DataFrame:
    """The table without columns of published values that `data` does not have.

    If it has none, a single column says why.
    """
    unused = [heading for name, heading in headings.items() if data[name].isna().all()]
    if len(unused) < len(headings) or not headings:
        return table.drop(columns=unused)
    of_paper = table.columns.str.startswith("Paper") | (table.columns == TO_PAPER)
    return table.loc[:, ~of_paper].assign(Paper=table[unused[0]])
