"""The cells of a report, why some have no result, and their metrics beside what is published."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import pandas as pd

from smmd_bench.contracts import Metric, Run, UserError
from smmd_bench.plugin_system.registry import load_task
from smmd_bench.plugin_system.tuned_label import is_tuned, tuned_label

from ._setting import published_beside, setting_label

_IDENTITY = ("model", "params", "task", "loss", "seed", "status", "stage")
KEY = ["model", "task", "loss"]
"""The columns that tell what was trained on what, and how."""
REFERENCE = "ce"
"""The loss that the others are compared with."""


def measured(cells: pd.DataFrame) -> pd.DataFrame:
    """Those of the cells that have results."""
    return cells[cells["status"] == "done"]


def main_losses(run: Run) -> tuple[Run, str]:
    """The run without variants that have fewer seeds than their plain loss, and a sentence on it.

    `smmd[sigma=1]` with one seed is left to the tables of ablations where `smmd` has three on the
    same model and task; with as many seeds it stays, and so does what was tuned, which is in no
    such table. The sentence is empty where all stays.
    """
    cells = run.cells
    seeds = cells.groupby(KEY, observed=True)["seed"].nunique().to_dict()
    fewer = [
        not is_tuned(loss)
        and seeds[model, task, loss] < seeds.get((model, task, loss.partition("[")[0]), 0)
        for model, task, loss in cells[KEY].itertuples(index=False)
    ]
    if not any(fewer):
        return run, ""
    left = cells.loc[fewer, "loss"].nunique()
    note = f"Only in the ablation tables and sweeps: {left} variants with fewer seeds."
    return run.only(cells[[not few for few in fewer]]), note


def with_holes(cells: pd.DataFrame) -> pd.DataFrame:
    """The measured cells, and all cells of a model, task and loss that has none of them."""
    done = cells["status"] == "done"
    return cells[
        done | ~done.groupby([cells[name] for name in KEY], observed=True).transform("any")
    ]


def why_missing(cells: pd.DataFrame) -> str:
    """Why a row has no result: `failed in train`, `skipped`, `pending`; empty where it has one."""
    if (cells["status"] == "done").any():
        return ""
    reasons = map(why_of, cells["status"], cells["stage"])
    return " / ".join(dict.fromkeys(reasons))


def why_no_row(cells: pd.DataFrame, what: str) -> str | None:
    """Why a table of these cells has no row; None: it has one. `what` names such a cell."""
    if cells.empty:
        return f"the run has no {what}"
    return f"no {what} has results yet" if measured(cells).empty else None


def why_of(status: Any, stage: Any) -> str:
    """`failed in train`, or the status of a cell that did not fail."""
    return f"failed in {stage}" if status == "failed" else str(status)


def without_numbers(run: Run) -> list[str]:
    """The measured tasks whose targets hold no answer that is a number, such as summaries."""
    first = measured(run.cells).drop_duplicates("task")
    answers = run.read("scores", ["answer"], first["address"]).reindex(columns=["task", "answer"])
    known = answers.groupby("task", observed=True)["answer"].count()
    return [str(task) for task in known.index[known == 0]]


def metrics_of(task: str) -> Sequence[Metric]:
    """The metrics of a task, the one that selects first; none where its plugin is not here."""
    try:
        return load_task(task).metrics()
    except UserError:
        return ()


def metrics_beside_published(
    run: Run,
    cells: pd.DataFrame,
    metrics: Sequence[str],
    table: str | None = None,
    published: Collection[str] = (),
    compared: str = "exact_match",
) -> pd.DataFrame:
    """One row a cell, in full precision: metrics, difference to another cell, published values.

    Columns: model, params, task, loss, seed, status, stage; METRIC_value, _low, _high and _n;
    against_loss, difference (of the metric `compared`) and difference_low, _high, _b, _c, _p;
    published_METRIC of the `published` metrics and against_published_METRIC (ours minus that),
    where the setting is the same; other_setting, what of it is not. What a cell does not have is
    missing. `table` is the paper's.
    """
    found = run.metrics[run.metrics["address"].isin(cells["address"])].to_dict("records")
    values = {(row["address"], row["metric"]): row for row in found}
    differing = run.comparisons[run.comparisons["metric"] == compared].to_dict("records")
    differences = {row["address"]: row for row in differing}
    rows: list[dict[str, Any]] = []
    for cell in cells.to_dict("records"):
        row: dict[str, Any] = {name: cell[name] for name in _IDENTITY}
        for metric in metrics:
            value = values.get((cell["address"], metric), {})
            row |= {f"{metric}_{part}": value.get(part) for part in ("value", "low", "high", "n")}
        difference = differences.get(cell["address"], {})
        row |= {part: difference.get(part) for part in ("against_loss", "difference")}
        row |= {f"difference_{part}": difference.get(part) for part in ("low", "high", *"bcp")}
        paper = published_beside(run, cell, table) if table else {}
        row["other_setting"] = setting_label(run, cell) if table else ""
        rows.append(row | {f"published_{metric}": paper.get(metric) for metric in published})
    data = pd.DataFrame(rows)
    for metric in published:
        ours, theirs = f"{metric}_value", f"published_{metric}"
        data[theirs] = data[theirs].astype("float64")
        data[f"against_{theirs}"] = data[ours].astype("float64") - data[theirs]
    return in_order(data, cells)


def one_row_a_metric(
    run: Run, cells: pd.DataFrame, metrics: Sequence[str], table: str | None = None
) -> pd.DataFrame:
    """The same with one row a cell and metric, whose difference is of that metric.

    metric; value, low, high, n; against_loss, difference and difference_low, _high, _b, _c, _p;
    with a table of the paper published and against_published. The index is the position of the
    cell; all cells of a metric stand together.
    """
    parts = []
    for metric in metrics:
        of_paper = [metric] if table else []
        part = metrics_beside_published(run, cells, [metric], table, of_paper, metric)
        part.columns = part.columns.str.removeprefix(f"{metric}_").str.removesuffix(f"_{metric}")
        parts.append(part.assign(metric=metric))
    return in_order(pd.concat(parts), cells)


def in_order(data: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
    """The frame with model, task and loss as categoricals in the order of the run."""
    for column in KEY:
        data[column] = pd.Categorical(data[column], categories=cells[column].cat.categories)
    return data


def is_reference(against: pd.Series[str], other: str) -> pd.Series[bool]:
    """Where a loss is compared with `other`: a tuned loss with that tuned, too."""
    return against.isin([other, tuned_label(other)])


def opponent(data: pd.DataFrame) -> str:
    """What the rows are compared with: cross-entropy, or what stands in for it."""
    others = list(data["against_loss"].dropna().unique())
    return REFERENCE if REFERENCE in others or not others else str(others[0])
