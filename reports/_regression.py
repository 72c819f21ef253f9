"""What the tables of regression checks share: their rows, and the sentences under them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from smmd_bench.publishing.style import loss_label, model_label
from smmd_bench.publishing.tables import DASH, number, p_value, with_deviation, with_interval

from ._cells import REFERENCE
from ._values import model_columns

MARGIN = 1.0
"""Points below cross-entropy that count as no loss of ability."""
LEAST = round(300 / MARGIN)
"""Questions below which not even equal answers to all of them would show that: rule of three."""
VERDICT = "Not worse"


def checkpoint_columns(row: Mapping[str, Any]) -> dict[str, str]:
    """Which checkpoint a row is of: model, what it was trained on, loss and seed."""
    trained = isinstance(row["task"], str)
    return {
        **model_columns(str(row["model"]), row["params"]),
        "Trained on": str(row["task"]) if trained else DASH,
        "Loss": loss_label(str(row["loss"])),
        "Seed": str(row["seed"]) if trained else DASH,
    }


def without_constant(table: pd.DataFrame, data: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Without the columns that are the same of all trained checkpoints, and a sentence with them;
    without those of a test or a limit that no row has.

    The untuned base and the paper's rows lack them, so that they would never look constant.
    """
    trained = data[data["cell"].notna()]
    said = []
    for column, name, words in (("task", "Trained on", "trained on"), ("seed", "Seed", "seed")):
        values = trained[column].unique()
        if len(values) <= 1:
            table = table.drop(columns=name)
            said += [f"{words} {value}" for value in values]
    sentence = f" Checkpoints {', '.join(said)}." if said else ""
    if data["limit"].isna().all():
        table = table.drop(columns="Limit")
    if data["p"].isna().all():
        table = table.drop(columns="p")
    engines = data["engine"].unique()
    if len(engines) == 1:
        table = table.drop(columns="Engine")
        sentence += f" Engine: {engines[0]}."
    return table, sentence


def with_error(value: Any, error: Any) -> str:
    """`55.47 ± 0.85`; the value alone where lm-eval gives no standard error."""
    if pd.isna(value):
        return DASH
    return with_deviation(float(value), None if pd.isna(error) else float(error))


def opponent_of(data: pd.DataFrame) -> str:
    """What the rows are compared with: cross-entropy, or what stands in for it."""
    others = list(data["against_loss"].dropna().unique())
    return REFERENCE if REFERENCE in others or not others else str(others[0])


def difference_names(other: str) -> list[str]:
    """The columns of `difference_columns`."""
    return [f"Δ to {loss_label(other)}", "p", VERDICT]


def difference_columns(row: Mapping[str, Any], other: str) -> dict[str, str]:
    """The paired difference to the opponent, in points, its test, and what it says."""
    heading, *_ = names = difference_names(other)
    if row["against_loss"] != other:
        return dict.fromkeys(names, DASH)
    difference = with_interval(row["difference"], row["low"], row["high"], 2, sign=True)
    enough = not pd.isna(row["low"]) and row["documents"] >= LEAST
    above = enough and float(row["low"]) > -MARGIN
    return {
        heading: difference,
        "p": DASH if pd.isna(row["p"]) else p_value(float(row["p"])),
        VERDICT: "yes" if above else "unclear",
    }


def difference_note(data: pd.DataFrame, other: str) -> str:
    """What the columns of `difference_columns` say; empty if nothing was compared."""
    if data["against_loss"].isna().all():
        return ""
    label = loss_label(other)
    tested = "; p: McNemar's exact test, not corrected for the number of comparisons"
    left_out = data["left_out"].fillna(0).max()
    return (
        f" Δ to {label}: paired difference over the same questions, in points, with its 95 % "
        f"interval (percentile bootstrap){tested if data['p'].notna().any() else ''}. {VERDICT}: "
        f"non-inferior with a margin of {MARGIN:g} point, for the whole interval lies above "
        f"−{MARGIN:g} (and n is {LEAST} or more); unclear is no proof of a loss."
    ) + (
        f" Up to {int(left_out):,} questions of a pair were not the same (lm-eval's data changed "
        "between the two) and are left out of Δ."
    ) * bool(left_out)


def limit_note(data: pd.DataFrame, what: str) -> str:
    """A sentence where only a part of the questions was asked; empty if all were."""
    limits = sorted(int(limit) for limit in data["limit"].dropna().unique())
    if not limits:
        return ""
    named = " or ".join(str(limit) for limit in limits)
    whose = "Rows with a limit" if data["limit"].isna().any() else "All rows"
    return (
        f" {whose} asked no more than the first {named} of each {what}'s questions: a quick look."
    )


def truncation_note(data: pd.DataFrame) -> str:
    """A sentence that counts the prompts that were cut; empty if none was."""
    cut = data[data["truncated"] > 0]
    cut = cut.drop_duplicates(["suite", "model", "truncated", "documents", "context"])
    if cut.empty:
        return ""
    named = "; ".join(
        f"{row['suite']} with {model_label(str(row['model']))}: {row['truncated']:,} of "
        f"{row['documents']:,} (context {row['context']:,} tokens)"
        for row in cut.to_dict("records")
    )
    return f" Prompts that did not fit the context and lost the first of their shots: {named}."


def setting_columns(row: Mapping[str, Any]) -> dict[str, str]:
    """How a row was evaluated."""
    shots = row["shots"]
    return {
        "Shots": DASH if pd.isna(shots) else str(shots),
        "Limit": DASH if pd.isna(row["limit"]) else f"first {int(row['limit'])}",
        "Engine": str(row["engine"]),
        "n": f"{int(row['n']):,}",
    }


def published_with_error(paper: Mapping[str, float], group: str) -> str:
    """A published value of Table 12 with its standard error."""
    return f"{number(paper[group])} ± {number(paper[f'{group}_error'])}"
