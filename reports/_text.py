"""What reports share in words and numbers: captions, the notes of a page, and the text of cells."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.publishing import tables
from smmd_bench.publishing.style import loss_label, model_label, task_label
from smmd_bench.publishing.tables import DASH, number, with_deviation, with_interval
from smmd_bench.results.constants import constants_of
from smmd_bench.results.pairing import find_metrics
from smmd_bench.scoring.statistics import over_seeds

from ._paper import find_paper_model
from ._results import count_digits, explain_missing, name_seeds, select_measured

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LISTED = 5
"""Losses that a sentence of the best constant answer names."""
P_HOLM, TO_PAPER = "p (Holm)", "Δ to paper"
BEST = "the best loss of a model and task, where its corrected p is below 0.05"
"""What a bold cell means."""
NOTES = {
    "[": "Intervals have 95 %. Of one seed they are over the test examples: Wilson's for shares, "
    "else the percentile bootstrap's. ± is the standard deviation over training seeds.",
    "Δ": "Δ is the paired difference on the same examples and seeds. In parentheses: the smallest "
    "true difference that its test finds with a probability of 80 %. Of an error n counts the "
    "examples that both answer with a number, in the seed with most of them.",
    P_HOLM: "Differences of several seeds are tested by a mixed model with crossed random effects "
    "of seed and example and Satterthwaite's degrees of freedom: they speak of other seeds and "
    "other test sets. Of one seed they speak of other test sets alone: Tango's interval and "
    "McNemar's exact test for exact match, the paired bootstrap for other metrics. p is corrected "
    "by Holm over the table's losses, for each model, task and metric. Bold (* on a terminal): "
    f"{BEST}.",
    "Loss": "Tuned losses have the setting that validates best, for each seed, and are compared "
    "with cross-entropy tuned over as many settings. Variants with fewer seeds than their plain "
    "loss are in the ablation tables and sweeps alone.",
    "Paper": "A published value stands beside a cell of the same model, data, size and training; "
    "else its place says what differs. The paper gives no seeds and no intervals.",
}
"""What a page says once of all its tables and figures, by what a table has that needs it."""


def select_notes(table: pd.DataFrame | None) -> list[str]:
    """The notes that a table needs; of a figure all."""
    if table is None:
        return [*NOTES.values()]

    # A sign in any heading or cell needs its note: an interval, a difference, a column of losses.
    text = " ".join(map(str, [*table.columns, *table.to_numpy().flat]))
    return [note for sign, note in NOTES.items() if sign in text]


def write_caption(
    run: Run, cells: pd.DataFrame, subject: str, warning: str = ""
) -> str:
    """What is shown, n and seeds, what must not be misread, and which losses have no result."""
    sentences = [
        subject,
        _describe_sample(run, select_measured(cells)),
        warning,
        _describe_missing(cells),
    ]
    return " ".join(filter(None, sentences))


def make_artefact(
    run: Run,
    cells: pd.DataFrame,
    subject: str,
    warning: str = "",
    *,
    table: pd.DataFrame | None = None,
    figure: Figure | None = None,
    data: pd.DataFrame | None = None,
) -> Artefact:
    """An artefact with the caption of `write_caption`, and the notes that its table needs."""
    caption = write_caption(run, cells, subject, warning)
    return Artefact(caption, table, figure, data, select_notes(table))


def _describe_sample(run: Run, cells: pd.DataFrame) -> str:
    """`n = 1,319 test examples; seeds 0, 1, 2.`, or of some tasks `n = 200 or 1,319`."""
    metrics = run.metrics[run.metrics["address"].isin(cells["address"])]
    # A metric of readable answers alone has a smaller n than the test set.
    sizes = metrics.groupby("address")["n"].max().unique()
    if not len(sizes):
        return ""

    n = " or ".join(f"{size:,}" for size in sorted(sizes))
    sample = f"n = {n} test examples"

    # Nothing says with which seeds completions were made elsewhere; the base was not trained.
    trained = cells[cells["loss"] != "base"]
    if "predictions" in run.manifest or trained.empty:
        return f"{sample}."
    return f"{sample}; {name_seeds(trained)}."


def _describe_missing(cells: pd.DataFrame) -> str:
    """Which losses have cells without a result, and why."""
    # A row that is missing without a word would look like a loss that nobody ran.
    reasons = []
    missing = cells[cells["status"] != "done"]
    for loss, group in missing.groupby("loss"):
        reasons.append(f"{loss_label(str(loss))} ({explain_missing(group)})")
    if not reasons:
        return ""
    sentence = f"Without a result: {', '.join(reasons)}."
    if "pending" in missing["status"].values:
        sentence += " What is pending is made by the command of the run."
    return sentence


def describe_noise_floor(data: pd.DataFrame, reference: str) -> str:
    """What the difference of the reference to itself is, where there is one."""
    is_noise = (data["loss"] == reference) & data["gain"].notna()
    if not is_noise.any():
        return ""
    label = loss_label(reference)
    return f"The row of {label} is the noise floor: {label} against itself, of other seeds."


def describe_model(model: str, params: Any) -> dict[str, str]:
    """Name and size of a model: as the paper prints them, where it is one of the paper's."""
    if entry := find_paper_model(model):
        return {"Model": entry["name"], "Params": entry["params"]}

    # Other models are called as the run calls them, and their parameters are counted.
    size = DASH if pd.isna(params) else tables.count(int(params))
    return {"Model": model_label(model), "Params": size}


def describe_row(row: Any) -> dict[str, str]:
    """The columns Model, Task and Loss of a row with these, as a table has them."""
    return {
        "Model": model_label(str(row["model"])),
        "Task": task_label(str(row["task"])),
        "Loss": loss_label(str(row["loss"])),
    }


def make_table(rows: Iterable[dict[str, str]]) -> pd.DataFrame:
    """The rows as a table, without the columns Model and Task where there is only one."""
    # A column of one value takes the room of another.
    table = pd.DataFrame(rows).fillna(DASH)
    for name in ("Model", "Task"):
        if table[name].nunique() == 1:
            table = table.drop(columns=name)
    return table


def format_mean(values: pd.Series[float], digits: int) -> str:
    """`43.4 ± 0.5` of the values that exist; a dash where none does."""
    present = [*map(float, values.dropna())]
    if not present:
        return DASH
    return with_deviation(*over_seeds(present), digits)


def format_estimate(cells: pd.DataFrame, digits: int, *, interval: bool = False) -> str:
    """The value of rows of a result frame: over seeds mean ± deviation, else with its interval."""
    # An interval over examples, beside a mean over seeds, would be read as one over seeds.
    if len(cells) > 1:
        return format_mean(cells["value"], digits)

    first = cells.iloc[0]
    if interval:
        return with_interval(first["value"], first["low"], first["high"], digits)
    return number(first["value"], digits)


def format_gain(cells: pd.DataFrame, digits: int = 1) -> str:
    """`+0.8 [-0.3, +1.9] (1.5)`: a difference as `add_tests` has it, and the smallest that its
    test finds; a dash if no cell was compared."""
    # `add_tests` pools the seeds, so that their rows say the same.
    first = cells.iloc[0]
    bounds = (first["gain_low"], first["gain_high"])
    text = with_interval(first["gain"], *bounds, digits, sign=True)

    smallest = first["gain_smallest"]
    return text if pd.isna(smallest) else f"{text} ({number(smallest, digits)})"


def format_p(p: Any) -> str:
    """A p-value, or a dash."""
    return DASH if pd.isna(p) else tables.p_value(p)


def name_difference(other: str) -> str:
    """The heading of a difference: `Δ to CE`."""
    return f"Δ to {loss_label(other)}"


def drop_dashes(table: pd.DataFrame, columns: Iterable[Any]) -> pd.DataFrame:
    """The table without those of these columns that hold dashes alone."""
    for name in columns:
        if name in table and (table[name] == DASH).all():
            table = table.drop(columns=name)
    return table


def drop_dashes_below(table: pd.DataFrame, prefix: str) -> pd.DataFrame:
    """The table without those columns of dashes alone whose headings begin so."""
    return drop_dashes(table, [name for name in table if str(name).startswith(prefix)])


def describe_constants(run: Run) -> str:
    """`The best constant answer gets Acc (%) 3.2, MAE 12.40.`; empty without an error to compare.

    Of several tasks each is named, and of several test sets of a task each has its values.
    """
    by_task = _list_texts(run)
    clauses = []
    for task, texts in by_task.items():
        on_task = f"on {task_label(task)} " if len(by_task) > 1 else ""
        clauses.append(on_task + " or ".join(texts))
    return f"The best constant answer gets {'; '.join(clauses)}." if clauses else ""


def _list_texts(run: Run) -> dict[str, list[str]]:
    """What the best constant answer gets by each metric, of each test set of each task."""
    by_task: dict[str, list[str]] = {}
    tasks = run.cells[["address", "task"]]
    constants = constants_of(run, run.cells).merge(tasks, on="address")
    groups = constants.groupby(["task", "address"], sort=False)
    for (task, _), rows in groups:
        values = rows.set_index("metric")["constant"]
        all_metrics = find_metrics(str(task))
        metrics = [metric for metric in all_metrics if metric.name in values]

        # Every accuracy that is worth a row beats a constant; an error may not, and none shows it.
        if not any(metric.better == "lower" for metric in metrics):
            continue

        # Cells with the same test examples have the same constant, which is said once.
        named = [_format_value(metric.label, values[metric.name]) for metric in metrics]
        text = ", ".join(named)
        texts = by_task.setdefault(str(task), [])
        if text not in texts:
            texts.append(text)
    return by_task


def describe_unbeaten(run: Run) -> str:
    """The losses whose error is not below that of the best constant answer; empty: none."""
    # The base was not trained on the task, and owes the constant nothing.
    cells = run.cells[run.cells["loss"] != "base"]
    compared = constants_of(run, cells).merge(run.metrics, on=["address", "metric"])
    has_several_tasks = compared["task"].nunique() > 1

    sentences = []
    for (task, name), rows in compared.groupby(["task", "metric"]):
        metrics = {metric.name: metric for metric in find_metrics(str(task))}
        metric = metrics[str(name)]
        unbeaten = _select_unbeaten(rows)
        if metric.better == "higher" or unbeaten.empty:
            continue

        on_task = f" on {task_label(str(task))}" if has_several_tasks else ""
        constant = _format_value(metric.label, unbeaten["constant"].iloc[0])
        names = _name_losses(unbeaten["value"], count_digits(metric.label))
        sentences.append(
            f"No better than the best constant answer{on_task} ({constant}): {names}."
        )
    return " ".join(sentences)


def _select_unbeaten(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean value and constant, over seeds, of the models and losses that are not below it."""
    groups = rows.groupby(["model", "loss"])
    means = groups[["value", "constant"]].mean()

    # Not `>=`: a loss without a single number has no error, and has beaten nothing.
    return means[~(means["value"] < means["constant"])]


def _name_losses(errors: pd.Series[float], digits: int) -> str:
    """`SMMD 12.40, NTL 13.00, 2 more` of errors by model and loss."""
    names = []
    for row in errors.head(_LISTED).reset_index().to_dict("records"):
        names.append(f"{loss_label(str(row['loss']))} {number(row['value'], digits)}")
    if len(errors) > _LISTED:
        names.append(f"{len(errors) - _LISTED} more")
    return ", ".join(names)


def _format_value(label: str, value: float) -> str:
    return f"{label} {number(value, count_digits(label))}"
