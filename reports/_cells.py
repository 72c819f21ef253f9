"""What the reports share: which cells have results, and their metrics beside what is published."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from smmd_bench.errors import UserError
from smmd_bench.publishing.style import loss_label, model_label
from smmd_bench.publishing.tables import (
    DASH,
    count,
    number,
    p_value,
    with_deviation,
    with_interval,
)
from smmd_bench.registry import load_task
from smmd_bench.scoring.statistics import over_seeds

from ._paper import paper_model, published

if TYPE_CHECKING:
    from smmd_bench.contracts import Metric
    from smmd_bench.results.run import RunFrames


REFERENCE = "ce"
"""The loss that the others are compared with."""


def measured(cells: pd.DataFrame) -> pd.DataFrame:
    """Those of the cells that have results."""
    return cells[cells["status"] == "done"]


def why_no_row(cells: pd.DataFrame, what: str) -> str | None:
    """Why a table of these cells has no row; None: it has one. `what` names such a cell."""
    if cells.empty:
        return f"the run has no {what}"
    return f"no {what} has results yet" if measured(cells).empty else None


def missing_note(cells: pd.DataFrame) -> str:
    """A sentence that names the cells without results; empty if there are none."""
    lacking = cells[cells["status"] != "done"]
    if lacking.empty:
        return ""
    several = cells["task"].nunique() > 1
    named = "; ".join(
        f"{cell.model} {f'{cell.task} ' if several else ''}{cell.loss} seed {cell.seed} "
        f"({cell.status}" + (f" in {cell.stage})" if cell.status == "failed" else ")")
        for cell in lacking.itertuples()
    )
    return f" Without a result: {named}."


def without_numbers(run: RunFrames) -> list[str]:
    """The measured tasks whose targets hold no answer that is a number, such as summaries."""
    first = measured(run.cells).drop_duplicates("task")
    answers = run.read("scores", ["answer"], first["address"])
    if "answer" not in answers:
        return []
    known = answers.groupby("task", observed=True)["answer"].count()
    return [str(task) for task in known.index[known == 0]]


def metrics_beside_published(
    run: RunFrames,
    cells: pd.DataFrame,
    metrics: Sequence[str],
    table: str | None,
    published_metrics: Iterable[str],
    compared: str = "exact_match",
) -> pd.DataFrame:
    """One row a cell, in full precision: metrics, difference to another cell, published values.

    Columns: model, params, task, loss, seed; METRIC_value, _low, _high and _n; against_loss,
    difference (of the metric `compared`) and difference_low, _high, _b, _c, _p; published_METRIC.
    What a cell does not have is missing. `table` is the paper's; None: it has none.
    """
    found = run.metrics[run.metrics["address"].isin(cells["address"])].to_dict("records")
    values = {(str(row["address"]), str(row["metric"])): row for row in found}
    differing = run.comparisons[run.comparisons["metric"] == compared].to_dict("records")
    differences = {str(row["address"]): row for row in differing}
    rows = []
    for cell in cells.to_dict("records"):
        address = str(cell["address"])
        row = {str(name): cell[name] for name in ("model", "params", "task", "loss", "seed")}
        for metric in metrics:
            for part in ("value", "low", "high", "n"):
                row[f"{metric}_{part}"] = values.get((address, metric), {}).get(part)
        difference = differences.get(address, {})
        for part in ("against_loss", "difference"):
            row[part] = difference.get(part)
        for part in ("low", "high", "b", "c", "p"):
            row[f"difference_{part}"] = difference.get(part)
        spec = {name: str(row[name]) for name in ("model", "task", "loss")}
        paper = {} if table is None else published(table, **spec)
        for metric in published_metrics:
            row[f"published_{metric}"] = paper.get(metric)
        rows.append(row)
    return in_order(pd.DataFrame(rows), cells)


def decoding(run: RunFrames) -> str:
    """How the completions came about, as a sentence."""
    made_elsewhere = "predictions" in run.manifest
    return "Completions made elsewhere." if made_elsewhere else "Greedy decoding."


def in_order(data: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
    """The frame with model, task and loss as categoricals in the order of the run."""
    for column in ("model", "task", "loss"):
        data[column] = pd.Categorical(data[column], categories=cells[column].cat.categories)
    return data


def model_columns(model: str, params: Any) -> dict[str, str]:
    """Name and size of a model: as the paper prints them, where it is one of the paper's."""
    known = paper_model(model)
    if known:
        return {"Model": known.name, "Params": known.params}
    return {"Model": model_label(model), "Params": DASH if pd.isna(params) else count(int(params))}


def mean_over_seeds(values: pd.Series[float], digits: int, *, sign: bool = False) -> str:
    """`43.4 ± 0.5` of the values that exist; a dash where none does."""
    found = [float(value) for value in values.dropna()]
    return with_deviation(*over_seeds(found), digits, sign=sign) if found else DASH


def estimate(cells: pd.DataFrame, prefix: str, digits: int, *, interval: bool) -> str:
    """A metric of one model, task and loss: over seeds mean ± deviation, else with its interval.

    `prefix` stands before `value`, `low` and `high` in the names of the columns.
    """
    values, first = cells[f"{prefix}value"], cells.iloc[0]
    if len(cells) > 1:
        return mean_over_seeds(values, digits)
    if interval:
        return with_interval(values.iloc[0], first[f"{prefix}low"], first[f"{prefix}high"], digits)
    return number(values.iloc[0], digits)


def metrics_of(task: str) -> Sequence[Metric]:
    """The metrics of a task, the one that selects first; none where its plugin is not here."""
    try:
        return load_task(task).metrics()
    except UserError:
        return ()


def opponent(data: pd.DataFrame) -> str:
    """What the rows are compared with: cross-entropy, or what stands in for it."""
    others = list(data["against_loss"].dropna().unique())
    return REFERENCE if REFERENCE in others or not others else str(others[0])


def difference_to(cells: pd.DataFrame, other: str) -> dict[str, str]:
    """The paired difference to the opponent; dashes where a cell was not compared with it."""
    heading = f"Δ to {loss_label(other)}"
    compared = cells[cells["against_loss"] == other]
    if compared.empty:
        return {heading: DASH, "p": DASH}
    text = _difference(compared, several=len(cells) > 1)
    return {heading: text, "p": " / ".join(p_value(p) for p in compared["difference_p"])}


def difference_and_opponent(cells: pd.DataFrame, heading: str) -> dict[str, str]:
    """The paired difference to whatever the cells were compared with, which is named as well."""
    against = cells["against_loss"].iloc[0]
    if not isinstance(against, str):
        return {heading: DASH, "vs": DASH, "p": DASH}
    return {
        heading: _difference(cells, several=len(cells) > 1),
        "vs": loss_label(against),
        "p": " / ".join(p_value(p) for p in cells["difference_p"].dropna()) or DASH,
    }


def _difference(cells: pd.DataFrame, *, several: bool) -> str:
    first, values = cells.iloc[0], cells["difference"]
    if several:
        return mean_over_seeds(values, 1, sign=True)
    bounds = (first["difference_low"], first["difference_high"])
    return with_interval(values.iloc[0], *bounds, 1, sign=True)
