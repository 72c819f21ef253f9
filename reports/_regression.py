"""What the tables of regression checks share: their rows, and the sentences under them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from smmd_bench.contracts import Artefact
from smmd_bench.publishing.style import loss_label, model_label
from smmd_bench.publishing.tables import DASH, p_value, with_deviation, with_interval
from smmd_bench.storage.cell import BASE

from ._caption import join_sentences, split_caption, when
from ._values import delta, model_columns

MARGIN = 1.0
"""Points below cross-entropy that count as no loss of ability."""
LEAST = round(300 / MARGIN)
"""Questions below which not even equal answers to all of them would show that: rule of three."""
VERDICT = "Not worse"


def with_error(value: Any, error: Any) -> str:
    """`55.47 ± 0.85`; the value alone without a standard error."""
    if pd.isna(value):
        return DASH
    return with_deviation(float(value), None if pd.isna(error) else float(error))


def row_of(row: Mapping[Any, Any], values: Mapping[str, str], other: str) -> dict[str, str]:
    """The checkpoint of a row of `run.regression`, its values, the difference and its setting."""
    trained = isinstance(row["task"], str)
    return {
        **model_columns(str(row["model"]), row["params"]),
        "Trained on": str(row["task"]) if trained else DASH,
        "Loss": loss_label(str(row["loss"])),
        "Seed": str(row["seed"]) if trained else DASH,
        **values,
        **_difference(row, other),
        "Shots": DASH if pd.isna(row["shots"]) else str(row["shots"]),
        "Limit": DASH if pd.isna(row["limit"]) else f"first {int(row['limit'])}",
        "Engine": str(row["engine"]),
        "n": f"{int(row['n']):,}",
    }


def is_elsewhere(row: Mapping[Any, Any]) -> bool:
    """Whether a row is of a checkpoint that no cell of the run has trained."""
    return pd.isna(row["cell"]) and str(row["loss"]) != BASE


def _difference(row: Mapping[Any, Any], other: str) -> dict[str, str]:
    """The paired difference over the whole suite, in points, its test, and what it says."""
    against = other if pd.isna(row["against_loss"]) else str(row["against_loss"])
    elsewhere = is_elsewhere(row) and against != other
    if (row["against_loss"] != other and not elsewhere) or row["n"] != row["documents"]:
        return dict.fromkeys((delta(other), "p", VERDICT), DASH)
    enough = not pd.isna(row["low"]) and row["documents"] >= LEAST
    above = enough and float(row["low"]) > -MARGIN
    difference = with_interval(row["difference"], row["low"], row["high"], 2, sign=True)
    return {
        delta(other): difference + f" to {loss_label(against)}" * elsewhere,
        "p": DASH if pd.isna(row["p"]) else p_value(float(row["p"])),
        VERDICT: "yes" if above else "unclear",
    }


def checks_artefact(
    table: pd.DataFrame, data: pd.DataFrame, other: str, values: list[str], *said: str, part: str
) -> Artefact:
    """The table without columns that are the same for all trained checkpoints: the caption has
    them.

    `values` are the columns that stay in any case, `part` is what a limit on the questions is of.
    The untuned base and the paper's rows have no task and seed, so they do not count.
    """
    trained, same = data[data["cell"].notna()], []
    for column, name, words in (("task", "Trained on", "trained on"), ("seed", "Seed", "seed")):
        found = trained[column].unique()
        if len(found) <= 1:
            table = table.drop(columns=name)
            same += [f"{words} {value}" for value in found]
    unused = [name for name in ("Limit", "p") if data[name.lower()].isna().all()]
    engines = data["engine"].unique()
    table = table.drop(columns=unused + ["Engine"] * (len(engines) == 1))
    table.attrs["values"] = [*values, delta(other), "p", VERDICT]
    caption = split_caption(
        *said,
        _difference_note(data, other),
        _limit_note(data, part),
        _truncation_note(data),
        when(same, f"Checkpoints {', '.join(same)}."),
        when(len(engines) == 1, f"Engine: {engines[0]}."),
    )
    return Artefact(table=table, data=data, **caption)


def _difference_note(data: pd.DataFrame, other: str) -> str:
    """What the columns of a difference say; empty if nothing was compared."""
    if data["against_loss"].isna().all():
        return ""
    test = "; p: McNemar's exact test, not corrected for the number of comparisons"
    left_out = int(data["left_out"].fillna(0).max())
    return join_sentences(
        f"{delta(other)}: paired difference over the same questions, in points, with its 95 % "
        f"interval (percentile bootstrap){test if data['p'].notna().any() else ''}.",
        f"{VERDICT}: yes if the whole interval is above −{MARGIN:g} point (non-inferiority) and n "
        f"is {LEAST} or more; unclear is no proof of a loss.",
        when(
            other != BASE and any(map(is_elsewhere, data.to_dict("records"))),
            f"A checkpoint from elsewhere is compared with the {loss_label(BASE)} model.",
        ),
        when(left_out, f"Δ leaves out up to {left_out:,} questions that lm-eval's data changed."),
    )


def _limit_note(data: pd.DataFrame, part: str) -> str:
    """A sentence if only some of the questions were asked."""
    limits = sorted(int(limit) for limit in data["limit"].dropna().unique())
    if not limits:
        return ""
    whose = "Rows with a limit" if data["limit"].isna().any() else "All rows"
    named = " or ".join(map(str, limits))
    return f"{whose} are a quick look: at most the first {named} questions of each {part}."


def _truncation_note(data: pd.DataFrame) -> str:
    """A sentence that counts the prompts that were cut; empty if none was."""
    cut = data[data["truncated"] > 0]
    cut = cut.drop_duplicates(["suite", "model", "truncated", "documents", "context"])
    named = "; ".join(
        f"{row['suite']} with {model_label(str(row['model']))}: {row['truncated']:,} of "
        f"{row['documents']:,} (context {row['context']:,} tokens)"
        for row in cut.to_dict("records")
    )
    return f"Prompts too long for the context lost their first shots: {named}." if named else ""
