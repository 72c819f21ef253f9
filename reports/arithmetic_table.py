"""Table 2 of the paper: arithmetic calculation results, each beside its published value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd

from smmd_bench.contracts import Artefact
from smmd_bench.publishing.style import loss_label, model_label
from smmd_bench.publishing.tables import DASH, count, number, p_value, with_deviation, with_interval
from smmd_bench.results.run import RunFrames
from smmd_bench.scoring.statistics import over_seeds

from ._arithmetic import arithmetic_cells, measured, missing_note, title_with_levels
from ._paper import paper_model, published, reference

METRICS = ("exact_match", "mean_absolute_error", "r_squared", "parse_failure_rate")
DIGITS = {"exact_match": 1, "mean_absolute_error": 2, "r_squared": 2, "parse_failure_rate": 1}
PUBLISHED = {"exact_match": "Acc", "mean_absolute_error": "MAE", "r_squared": "R²"}


@dataclass(frozen=True)
class ArithmeticTable:
    """Accuracy, MAE and R² by model and loss, with intervals and the difference to CE."""

    name: ClassVar[str] = "arithmetic_table"
    title: ClassVar[str] = "Arithmetic calculation results"
    paper: ClassVar[str] = "Table 2"

    def skip(self, run: RunFrames) -> str | None:
        """Without a measured arithmetic cell there is no row."""
        cells = arithmetic_cells(run)
        if cells.empty:
            return "the run has no arithmetic cell"
        return "no arithmetic cell has results yet" if measured(cells).empty else None

    def build(self, run: RunFrames) -> Artefact:
        """One row a model, level and loss; over several seeds mean ± standard deviation."""
        cells = arithmetic_cells(run)
        data = _data(run, measured(cells))
        groups = data.groupby(["model", "task", "loss"], observed=True)
        table = pd.DataFrame([_row(group) for _, group in groups])
        if cells["task"].nunique() == 1:
            table = table.drop(columns="Task")
        if not data["published_exact_match"].notna().any():
            table = table.drop(columns=[f"Paper {name}" for name in PUBLISHED.values()])
        table.attrs["title"] = title_with_levels(self.title, cells)
        return Artefact(caption=_caption(data, cells), table=table, data=data)


def _data(run: RunFrames, cells: pd.DataFrame) -> pd.DataFrame:
    """One row a cell, in full precision: metrics, difference to CE and published values."""
    metrics = run.metrics[run.metrics["address"].isin(cells["address"])].to_dict("records")
    values = {(str(row["address"]), str(row["metric"])): row for row in metrics}
    exact = run.comparisons[run.comparisons["metric"] == "exact_match"].to_dict("records")
    compared = {str(row["address"]): row for row in exact}
    rows = []
    for cell in cells.to_dict("records"):
        address = str(cell["address"])
        row = {str(name): cell[name] for name in ("model", "params", "task", "loss", "seed")}
        for metric in METRICS:
            for part in ("value", "low", "high", "n"):
                row[f"{metric}_{part}"] = values.get((address, metric), {}).get(part)
        difference = compared.get(address, {})
        for part in ("against_loss", "difference"):
            row[part] = difference.get(part)
        for part in ("low", "high", "b", "c", "p"):
            row[f"difference_{part}"] = difference.get(part)
        paper = published(
            "arithmetic", model=str(row["model"]), task=str(row["task"]), loss=str(row["loss"])
        )
        for metric in PUBLISHED:
            row[f"published_{metric}"] = paper.get(metric)
        rows.append(row)
    data = pd.DataFrame(rows)
    for column in ("model", "task", "loss"):
        data[column] = pd.Categorical(data[column], categories=cells[column].cat.categories)
    return data


def _row(cells: pd.DataFrame) -> dict[str, str]:
    """The row of one (model, level, loss): its cells differ in their seed alone."""
    first = cells.iloc[0]
    known = paper_model(first["model"])
    several = len(cells) > 1
    row = {
        "Model": known.name if known else model_label(first["model"]),
        "Params": known.params if known else _params(first["params"]),
        "Task": first["task"],
        "Loss": loss_label(first["loss"]),
    }
    labels = ("Acc (%)", "MAE", "R²", "Parse fail (%)")
    for metric, label in zip(METRICS, labels, strict=True):
        values = cells[f"{metric}_value"]
        if several:
            row[label] = _over_seeds(values, DIGITS[metric])
        elif metric == "exact_match":
            bounds = (first[f"{metric}_low"], first[f"{metric}_high"])
            row[label] = with_interval(values.iloc[0], *bounds, DIGITS[metric])
        else:
            row[label] = number(values.iloc[0], DIGITS[metric])
    against = first["against_loss"]
    row["Δ Acc"] = row["vs"] = row["p"] = DASH
    if isinstance(against, str):
        row["vs"] = loss_label(against)
        row["p"] = " / ".join(p_value(p) for p in cells["difference_p"].dropna())
        if several:
            row["Δ Acc"] = _over_seeds(cells["difference"], 1, sign=True)
        else:
            bounds = (first["difference_low"], first["difference_high"])
            row["Δ Acc"] = with_interval(first["difference"], *bounds, 1, sign=True)
    row["n"] = f"{int(first['exact_match_n']):,}"
    row["Seeds"] = str(len(cells))
    for metric, name in PUBLISHED.items():
        row[f"Paper {name}"] = number(first[f"published_{metric}"])
    return row


def _over_seeds(values: pd.Series[float], digits: int, *, sign: bool = False) -> str:
    found = [float(value) for value in values.dropna()]
    return with_deviation(*over_seeds(found), digits, sign=sign) if found else DASH


def _params(params: Any) -> str:
    return DASH if pd.isna(params) else count(int(params))


def _caption(data: pd.DataFrame, cells: pd.DataFrame) -> str:
    seeds = data.groupby(["model", "task", "loss"], observed=True).size().max()
    parts = [
        "Greedy decoding. Acc is exact match by value; a completion without a number counts as "
        "wrong, and is left out of MAE and R², which a single wild completion can dominate.",
        "Brackets: 95 % intervals, percentile bootstrap over the n test examples.",
    ]
    if seeds > 1:
        parts.append("±: standard deviation over training seeds.")
    parts.append(
        "Δ Acc: paired difference on the same examples to the row named under vs; "
        "p: McNemar's exact test" + (", one for each seed." if seeds > 1 else ".")
    )
    if data["published_exact_match"].notna().any():
        parts.append(f"Paper: {reference('arithmetic')}; its seeds are not reported.")
    elif any(paper_model(str(model)) for model in cells["model"].unique()):
        parts.append("The paper's values are for its own level, and so are not shown here.")
    return " ".join(parts) + missing_note(cells)
