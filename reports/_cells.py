"""What the reports share: which cells have results, and their metrics beside what is published."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from smmd_bench.contracts import UserError
from smmd_bench.plugin_system.registry import load_task
from smmd_bench.publishing.style import loss_label, model_label
from smmd_bench.publishing.tables import (
    DASH,
    count,
    number,
    p_value,
    with_deviation,
    with_interval,
)
from smmd_bench.scoring.statistics import over_seeds

from ._paper import paper_model
from ._setting import published_beside

if TYPE_CHECKING:
    from smmd_bench.contracts import Metric, Run


_IDENTITY = ("model", "params", "task", "loss", "seed", "status", "stage")
REFERENCE = "ce"
"""The loss that the others are compared with."""
P_HOLM, TO_PAPER = "p (Holm)", "Δ to paper"
NOT_COMPARED = "not compared"


def measured(cells: pd.DataFrame) -> pd.DataFrame:
    """Those of the cells that have results."""
    return cells[cells["status"] == "done"]


def with_holes(cells: pd.DataFrame) -> pd.DataFrame:
    """The measured cells, and all cells of a model, task and loss that has none of them."""
    done = cells["status"] == "done"
    groups = [cells[name] for name in ("model", "task", "loss")]
    return cells[done | ~done.groupby(groups, observed=True).transform("any")]


def why_missing(cells: pd.DataFrame) -> str:
    """Why a row has no result: `failed in train`, `skipped`, `pending`; empty where it has one."""
    if (cells["status"] == "done").any():
        return ""
    reasons = (
        f"failed in {stage!s}" if status == "failed" else str(status)
        for status, stage in zip(cells["status"], cells["stage"], strict=True)
    )
    return " / ".join(dict.fromkeys(reasons))


def why_no_row(cells: pd.DataFrame, what: str) -> str | None:
    """Why a table of these cells has no row; None: it has one. `what` names such a cell."""
    if cells.empty:
        return f"the run has no {what}"
    return f"no {what} has results yet" if measured(cells).empty else None


def missing_note(cells: pd.DataFrame) -> str:
    """A sentence that names the cells without results; empty if there are none.

    Losses that lack the same seeds for the same reason stand together.
    """
    lacking = cells[cells["status"] != "done"]
    if lacking.empty:
        return ""
    several = cells["task"].nunique() > 1
    seeds: dict[tuple[str, str, str], list[str]] = {}
    for cell in lacking.itertuples():
        why = str(cell.status) + (f" in {cell.stage!s}" if cell.status == "failed" else "")
        where = f"{cell.model} {cell.task}" if several else str(cell.model)
        seeds.setdefault((where, str(cell.loss), why), []).append(str(cell.seed))
    losses: dict[tuple[str, str, str], list[str]] = {}
    for (where, loss, why), found in seeds.items():
        which = f"seed{'s' * (len(found) > 1)} {', '.join(found)}"
        losses.setdefault((where, which, why), []).append(loss)
    named = "; ".join(
        f"{where} {', '.join(those)} {which} ({why})"
        for (where, which, why), those in losses.items()
    )
    return f" Without a result: {named}."


def without_numbers(run: Run) -> list[str]:
    """The measured tasks whose targets hold no answer that is a number, such as summaries."""
    first = measured(run.cells).drop_duplicates("task")
    answers = run.read("scores", ["answer"], first["address"])
    if "answer" not in answers:
        return []
    known = answers.groupby("task", observed=True)["answer"].count()
    return [str(task) for task in known.index[known == 0]]


def metrics_beside_published(
    run: Run,
    cells: pd.DataFrame,
    metrics: Sequence[str],
    table: str | None,
    published_metrics: Collection[str],
    compared: str = "exact_match",
) -> pd.DataFrame:
    """One row a cell, in full precision: metrics, difference to another cell, published values.

    Columns: model, params, task, loss, seed, status, stage; METRIC_value, _low, _high and _n;
    against_loss, difference (of the metric `compared`) and difference_low, _high, _b, _c, _p;
    published_METRIC and against_published_METRIC (ours minus that), where the setting is the same.
    What a cell does not have is missing. `table` is the paper's; None: it has none.
    """
    found = run.metrics[run.metrics["address"].isin(cells["address"])].to_dict("records")
    values = {(str(row["address"]), str(row["metric"])): row for row in found}
    differing = run.comparisons[run.comparisons["metric"] == compared].to_dict("records")
    differences = {str(row["address"]): row for row in differing}
    rows = []
    for cell in cells.to_dict("records"):
        address = str(cell["address"])
        row = {str(name): cell[name] for name in _IDENTITY}
        for metric in metrics:
            for part in ("value", "low", "high", "n"):
                row[f"{metric}_{part}"] = values.get((address, metric), {}).get(part)
        difference = differences.get(address, {})
        for part in ("against_loss", "difference"):
            row[part] = difference.get(part)
        for part in ("low", "high", "b", "c", "p"):
            row[f"difference_{part}"] = difference.get(part)
        paper = {} if table is None else published_beside(run, cell, table)
        for metric in published_metrics:
            row[f"published_{metric}"] = paper.get(metric)
        rows.append(row)
    data = pd.DataFrame(rows)
    for metric in published_metrics:
        ours, theirs = f"{metric}_value", f"published_{metric}"
        data[theirs] = data[theirs].astype("float64")
        data[f"against_{theirs}"] = data[ours].astype("float64") - data[theirs]
    return in_order(data, cells)


def decoding(run: Run) -> str:
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
    text = DASH if compared.empty else _difference(compared, several=len(cells) > 1)
    return {heading: text, **corrected_p(cells)}


def corrected_p(cells: pd.DataFrame) -> dict[str, str]:
    """The p-value of a model, task and loss, which `_significance.tested` has corrected."""
    p = cells["p_holm"].iloc[0]
    return {P_HOLM: DASH if pd.isna(p) else p_value(p)}


def beside_paper(cells: pd.DataFrame, headings: Mapping[str, str]) -> dict[str, str]:
    """The published values, and how far the mean of the first of the metrics is from its own."""
    first, *_ = headings
    row = {name: number(cells[f"published_{m}"].iloc[0]) for m, name in headings.items()}
    return {**row, TO_PAPER: number(cells[f"against_published_{first}"].mean(), 1, sign=True)}


def without_paper(table: pd.DataFrame, headings: Mapping[str, str]) -> pd.DataFrame:
    """The table without the columns of `beside_paper` where the paper has nothing for any row.

    Where none is left, a column says so: the caption has the reason.
    """
    unused = [name for name in headings.values() if (table[name] == DASH).all()]
    if len(unused) < len(headings):
        return table.drop(columns=unused)
    return table.drop(columns=[*unused, TO_PAPER]).assign(Paper=NOT_COMPARED)


def difference_and_opponent(cells: pd.DataFrame, heading: str) -> dict[str, str]:
    """The paired difference to one opponent of the cells, CE where it is one, which is named.

    Cells that were not compared with it do not count.
    """
    if cells["against_loss"].isna().all():
        return {heading: DASH, "vs": DASH, "p": DASH}
    other = opponent(cells)
    compared = cells[cells["against_loss"] == other]
    return {
        heading: _difference(compared, several=len(cells) > 1),
        "vs": loss_label(other),
        "p": " / ".join(p_value(p) for p in compared["difference_p"].dropna()) or DASH,
    }


def _difference(cells: pd.DataFrame, *, several: bool) -> str:
    first, values = cells.iloc[0], cells["difference"]
    if several:
        return mean_over_seeds(values, 1, sign=True)
    bounds = (first["difference_low"], first["difference_high"])
    return with_interval(values.iloc[0], *bounds, 1, sign=True)
