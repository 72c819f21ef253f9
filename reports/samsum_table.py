"""Table 11 of the paper: SAMSum, summaries scored by ROUGE, beside the published values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.publishing.style import loss_label, model_label
from smmd_bench.publishing.tables import DASH, number, with_interval

from ._cells import (
    NOT_COMPARED,
    REFERENCE,
    TO_PAPER,
    decoding,
    mean_over_seeds,
    measured,
    metrics_beside_published,
    missing_note,
    model_columns,
    opponent,
    why_missing,
    why_no_row,
    with_holes,
)
from ._main_losses import main_losses
from ._paper import published, reference
from ._sample import sample_note
from ._setting import SYNTHETIC, data_source, setting_note
from ._vision import title_with_source

TASK, TABLE = "samsum", "samsum"
KINDS = {"rouge1": "1", "rouge2": "2", "rougeL": "L"}


@dataclass(frozen=True)
class SamsumTable:
    """ROUGE-1, ROUGE-2 and ROUGE-L by model and loss, with differences to CE."""

    name: ClassVar[str] = "samsum_table"
    title: ClassVar[str] = "SAMSum dialogue summarization"
    paper: ClassVar[str] = "Table 11"

    def skip(self, run: Run) -> str | None:
        """Without a measured cell of SAMSum there is no row."""
        return why_no_row(_summaries(run), f"{TASK} cell")

    def build(self, run: Run) -> Artefact:
        """One row a model, loss and kind of ROUGE; over seeds mean ± standard deviation."""
        run, left = main_losses(run.only(_summaries(run)))
        cells = run.cells
        data = rouge_scores(run, with_holes(cells))
        groups = data.groupby(["model", "loss", "metric"], observed=True, sort=False)
        other = opponent(data)
        table = pd.DataFrame([_row(group, other) for _, group in groups]).fillna(DASH)
        if data["published"].isna().all():
            unused = ["Paper", TO_PAPER, f"Paper Δ to {loss_label(other)}"]
            table = table.drop(columns=unused).assign(Paper=NOT_COMPARED)
        data["data"] = [data_source(run, str(task)) for task in data["task"]]
        table.attrs["title"] = title_with_source(self.title, data, "dialogues")
        caption = _caption(run, data, cells) + setting_note(run, cells) + left
        return Artefact(caption=caption + missing_note(cells), table=table, data=data)


def rouge_scores(run: Run, cells: pd.DataFrame) -> pd.DataFrame:
    """One row a cell and kind of ROUGE, in full precision.

    model, params, task, loss, seed, status, stage, metric; value, low, high, n; against_loss,
    difference, difference_low, difference_high; published, against_published (ours minus that) and
    published_difference (to CE), where the setting is the same; truncation_rate; tokens and numeric
    of the supervised targets.
    """
    parts = []
    for metric in KINDS:
        part = metrics_beside_published(
            run, cells, [metric, "truncation_rate"], TABLE, [metric], compared=metric
        )
        part = part.rename(columns={f"{metric}_{p}": p for p in ("value", "low", "high", "n")})
        part = part.rename(columns={"truncation_rate_value": "truncation_rate"})
        part = part.rename(
            columns={
                f"published_{metric}": "published",
                f"against_published_{metric}": "against_published",
            }
        )
        reference = [_reference(row, metric) for row in part.to_dict("records")]
        part = part.assign(metric=metric, published_difference=part["published"] - reference)
        part = part.drop(columns=["difference_b", "difference_c", "difference_p"])
        parts.append(part.drop(columns=[c for c in part if str(c).startswith("truncation_rate_")]))
    receipts = [
        (run.current(str(address)).receipt or {}).get("numeric_targets")
        for address in cells["address"]
    ]
    for name in ("tokens", "numeric"):
        counts = [(receipt or {}).get(name) for receipt in receipts]
        for part in parts:
            part[name] = pd.array(counts, dtype="Int64")
    data = pd.concat(parts).sort_index(kind="stable").reset_index(drop=True)
    for column in ("value", "low", "high", "difference", "difference_low", "difference_high"):
        data[column] = pd.to_numeric(data[column]).astype("float64")
    return data


def _summaries(run: Run) -> pd.DataFrame:
    return run.cells[run.cells["task_name"] == TASK]


def _reference(row: Mapping[Any, Any], metric: str) -> float:
    """What the paper prints for CE with the row's model; NaN where it has none."""
    found = published(TABLE, model=str(row["model"]), task=str(row["task"]), loss=REFERENCE)
    return found.get(metric, float("nan"))


def _row(cells: pd.DataFrame, other: str) -> dict[str, str]:
    """The row of one (model, loss, kind): its cells differ in their seed alone."""
    first = cells.iloc[0]
    row = {
        **model_columns(first["model"], first["params"]),
        "Loss": loss_label(first["loss"]),
        "ROUGE": KINDS[first["metric"]],
    }
    if why := why_missing(cells):
        return {**row, "F1 × 100": why}
    compared = cells[cells["against_loss"] == other]
    difference = DASH
    if len(cells) > 1:
        value = mean_over_seeds(cells["value"], 1)
        difference = mean_over_seeds(compared["difference"], 1, sign=True)
    else:
        value = with_interval(first["value"], first["low"], first["high"], 1)
        if len(compared):
            low, high = first["difference_low"], first["difference_high"]
            difference = with_interval(first["difference"], low, high, 1, sign=True)
    paper = first["published_difference"] if first["loss"] != REFERENCE else float("nan")
    to = f"Δ to {loss_label(other)}"
    return {
        **row,
        "F1 × 100": value,
        to: difference,
        "Paper": number(first["published"]),
        TO_PAPER: number(cells["against_published"].mean(), 1, sign=True),
        f"Paper {to}": number(paper, sign=True),
        "n": f"{int(first['n']):,}",
        "Seeds": str(len(cells)),
    }


def _caption(run: Run, data: pd.DataFrame, cells: pd.DataFrame) -> str:
    several = measured(data).groupby(["model", "loss", "metric"], observed=True).size().max() > 1
    trained_here = "predictions" not in run.manifest
    parts = [
        decoding(run),
        "ROUGE-1, ROUGE-2 and ROUGE-L of the first paragraph against the one reference, F1, words "
        "stemmed (rouge-score)" + ("; validation ROUGE-L selects the epoch." * trained_here or "."),
        sample_note(run, cells),
        "Brackets: 95 % intervals, percentile bootstrap over the n test dialogues; differences are "
        "paired, on the same dialogues.",
    ]
    if several:
        parts.append("±: standard deviation over training seeds.")
    parts += _numeric_share(data) + _cut_off(data)
    if data["published"].notna().any():
        parts.append(
            f"Paper: {reference(TABLE)}, which does not report its seeds, prompt, intervals or "
            f"whether ROUGE stems. {TO_PAPER}: F1 × 100 minus that."
        )
    if (data["data"] == SYNTHETIC).any():
        parts.append("Synthetic dialogues are far easier than the corpus.")
    return " ".join(parts)


def _numeric_share(data: pd.DataFrame) -> list[str]:
    """How much of what is trained on a numeric loss sees at all, by model."""
    known = data[data["tokens"].notna()].drop_duplicates("model")
    shares = [
        f"{row['numeric']:,} of {row['tokens']:,} ({row['numeric'] / row['tokens']:.1%})"
        + (f" with {model_label(str(row['model']))}" if len(known) > 1 else "")
        for row in known.to_dict("records")
    ]
    return [
        f"Supervised tokens of the training set that are numeric: {', '.join(shares)}; on all "
        "others every loss is cross-entropy."
    ] * bool(shares)


def _cut_off(data: pd.DataFrame) -> list[str]:
    """How many summaries of the trained losses were cut off, where that is known."""
    rates = data.loc[data["loss"] != "base", "truncation_rate"].dropna().astype("float64")
    if rates.empty or rates.max() == 0:
        return []
    return [f"Up to {rates.max():.1f} % of a trained loss's summaries reach the limit of tokens."]
