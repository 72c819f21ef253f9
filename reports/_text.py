"""What reports share in words and numbers: captions, the notes of a page, and the text of cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from smmd_bench.contracts import Run
from smmd_bench.publishing import tables
from smmd_bench.publishing.style import loss_label, model_label
from smmd_bench.publishing.tables import DASH, number, with_deviation, with_interval
from smmd_bench.scoring.statistics import over_seeds

from ._cells import REFERENCE, measured, of_pair, pairs, why_missing
from ._paper import paper_model

P_HOLM, TO_PAPER = "p (Holm)", "Δ to paper"
ONE_SEED = "One seed: no interval covers the randomness of training."
NOTES = (
    "Intervals have 95 %. Of one seed they are over the test examples: Wilson's for shares, else "
    "the percentile bootstrap's. ± is the standard deviation over training seeds.",
    "Δ is the paired difference on the same examples and seeds. In parentheses behind it: the "
    "smallest true difference that its test finds with a probability of 80 %.",
    "Differences of several seeds are tested by a mixed model with crossed random effects of seed "
    "and test example and Satterthwaite's degrees of freedom: interval and p speak of other seeds "
    "and other test sets. Of one seed they speak of other test sets alone: Tango's interval and "
    "McNemar's exact test for exact match, the paired bootstrap for other metrics.",
    "p is corrected by Holm over the losses of a model, task and metric. Bold (* on a terminal): "
    "the best loss of a model and task, where its corrected p is below 0.05. A row that compares "
    "cross-entropy with itself has disjoint pairs of its seeds: the noise floor.",
    "Tuned losses have the setting that validates best, for each seed, and are compared with "
    "cross-entropy tuned over as many settings. Variants with fewer seeds than their plain loss "
    "are in the ablation tables and sweeps alone.",
    "A published value stands beside a cell of the same model, data, size and training; else its "
    "place says what differs. Δ to paper: ours minus the paper's. The paper gives no seeds and no "
    "intervals.",
)
"""What a page says once of all its tables and figures."""
_FIRST, _LAST, LOSSES = (REFERENCE, "smmd"), "base", 6
"""Columns of losses at most; the CSV of the data has all."""


def caption(run: Run, cells: pd.DataFrame, shown: str, warning: str = "") -> str:
    """What is shown, n and seeds of the measured cells, what a reader must not misread, and which
    losses have no result."""
    return " ".join(filter(None, [shown, _sample(run, cells), warning, _missing(cells)]))


def _sample(run: Run, cells: pd.DataFrame) -> str:
    """`n = 1,000 test examples; seeds 0, 1.`"""
    done = measured(cells)
    sizes = run.metrics[run.metrics["address"].isin(done["address"])].groupby("address")["n"].max()
    if sizes.empty:
        return ""
    n = " or ".join(f"{size:,}" for size in sorted(sizes.unique()))
    trained = done[done["loss"] != "base"]
    seeds = "" if "predictions" in run.manifest or trained.empty else f"; {named_seeds(trained)}"
    return f"n = {n} test examples{seeds}."


def _missing(cells: pd.DataFrame) -> str:
    lacking = cells[cells["status"] != "done"]
    groups = lacking.groupby("loss", observed=True)
    named = [f"{loss_label(str(loss))} ({why_missing(own)})" for loss, own in groups]
    return f"Without a result: {', '.join(named)}." if named else ""


def named_seeds(cells: pd.DataFrame) -> str:
    """`seed 0` or `seeds 0, 1, 2`."""
    seeds = sorted(cells["seed"].unique())
    return f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}"


def model_columns(model: str, params: Any) -> dict[str, str]:
    """Name and size of a model: as the paper prints them, where it is one of the paper's."""
    if known := paper_model(model):
        return {"Model": known.name, "Params": known.params}
    size = DASH if pd.isna(params) else tables.count(int(params))
    return {"Model": model_label(model), "Params": size}


def row_head(row: Any) -> dict[str, str]:
    """The columns Model, Task and Loss of a row with these, as a table has them."""
    names = {"Model": model_label(str(row["model"])), "Task": str(row["task"])}
    return {**names, "Loss": loss_label(str(row["loss"]))}


def row_table(rows: Iterable[dict[str, str]], title: str) -> pd.DataFrame:
    """The rows as a table, without the columns Model and Task where there is only one."""
    table = pd.DataFrame(rows).fillna(DASH)
    table = table.drop(columns=[name for name in ("Model", "Task") if table[name].nunique() == 1])
    table.attrs["title"] = title
    return table


def loss_columns(data: pd.DataFrame, row: str, cells: pd.DataFrame) -> pd.DataFrame:
    """A row for each model, task and value of `row`, a column with the `text` of each `column`.

    The first columns are those of the losses that fit: cross-entropy and SMMD first, variants and
    the untuned model last. A loss without a result has the reason in the first row of its pair.
    """
    every = [str(loss) for loss in cells["loss"].cat.categories]
    ranked = sorted(every, key=lambda x: (x not in _FIRST, x == _LAST, "[" in x))[:LOSSES]
    labels = {loss: loss_label(loss) for loss in every if loss in ranked}
    data = data[data["loss"].isin(ranked)]
    others = [name for name in data["column"].unique() if name.startswith("Paper ")]
    table = data.pivot(index=["model", "task", row], columns="column", values="text")
    table = table.reindex(columns=[*labels.values(), *others]).astype("object")
    table = table.fillna(DASH).reset_index()
    for pair in pairs(data):
        there, first = of_pair(cells, pair), of_pair(table, pair).index[0]
        for loss, label in labels.items():
            if why := why_missing(there[there["loss"] == loss]):
                table.loc[first, label] = why
    table = table.rename(columns={"model": "Model", "task": "Task"})
    return table.assign(Model=[model_label(str(model)) for model in table["Model"]])


def mean_over_seeds(values: pd.Series[float], digits: int, *, sign: bool = False) -> str:
    """`43.4 ± 0.5` of the values that exist; a dash where none does."""
    found = [float(value) for value in values.dropna()]
    return with_deviation(*over_seeds(found), digits, sign=sign) if found else DASH


def estimate(cells: pd.DataFrame, digits: int, *, interval: bool = False) -> str:
    """The value of rows of a result frame: over seeds mean ± deviation, else with its interval."""
    first = cells.iloc[0]
    if len(cells) > 1:
        return mean_over_seeds(cells["value"], digits)
    if interval:
        return with_interval(first["value"], first["low"], first["high"], digits)
    return number(first["value"], digits)


def gain(cells: pd.DataFrame, digits: int = 1) -> str:
    """`+0.8 [-0.3, +1.9] (1.5)`: a difference as `with_tests` has it, and the smallest that its
    test finds; a dash if no cell was compared."""
    first = cells.iloc[0]
    value, low, high, smallest = first[["gain", "gain_low", "gain_high", "gain_smallest"]]
    text = with_interval(value, low, high, digits, sign=True)
    return text if pd.isna(smallest) else f"{text} ({number(smallest, digits)})"


def corrected_p(cells: pd.DataFrame) -> str:
    """The p-value of that difference."""
    return p_text(cells["gain_p"].iloc[0])


def p_text(p: Any) -> str:
    """A p-value, or a dash."""
    return DASH if pd.isna(p) else tables.p_value(p)


def delta(other: str) -> str:
    """The heading of a difference: `Δ to CE`."""
    return f"Δ to {loss_label(other)}"


def without_dashes(table: pd.DataFrame, columns: Iterable[Any]) -> pd.DataFrame:
    """The table without those of these columns that hold dashes alone."""
    return table.drop(columns=[c for c in columns if c in table and (table[c] == DASH).all()])


def head_of(cells: pd.DataFrame) -> Mapping[str, str]:
    """What a row is of: its model, task, source of data (if the frame has it) and loss."""
    first = cells.iloc[0]
    source = {"Data": str(first["data"])} if "data" in cells else {}
    task = {"Task": str(first["task"])}
    return {
        **model_columns(str(first["model"]), first["params"]),
        **task,
        **source,
        "Loss": loss_label(str(first["loss"])),
    }


def beside_paper(cells: dict[str, pd.DataFrame]) -> dict[str, str]:
    """The published values by heading, or what of the setting is another, and the difference."""
    first, *_ = cells
    row = {heading: number(here["published"].iloc[0]) for heading, here in cells.items()}
    if cells[first]["published"].isna().iloc[0]:
        row[first] = cells[first]["other_setting"].iloc[0] or DASH
    return {**row, TO_PAPER: number(cells[first]["against_published"].mean(), 1, sign=True)}


def without_paper(table: pd.DataFrame, data: pd.DataFrame) -> pd.DataFrame:
    """The table without columns of published values that there are none of; if there is none at
    all, a single column says why."""
    papers = [name for name in table if str(name).startswith("Paper")]
    if not papers:
        return table
    if data["published"].notna().any():
        return without_dashes(table, papers[1:])
    return table.drop(columns=[*papers, TO_PAPER]).assign(Paper=table[papers[0]])
