"""One example: the question, and what each loss answered, with its digit distributions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...errors import UserError, did_you_mean
from ...storage.current import CellFile
from .cells import Group

if TYPE_CHECKING:
    import pandas as pd

_DIGITS = tuple(f"p{digit}" for digit in range(10))
_SCORES = ("uid", "answer", "parsed", "exact", "error", "category")
_PROBES = ("uid", "digit", "target_value", "p_target", *_DIGITS, "answer_digit")
_KNOWN = 2000


@dataclass(frozen=True)
class Distribution:
    """Where a model puts its probability at one numeric token of the target.

    `answer_digit`: 0 begins with the first digit of the final answer; -1 is outside it, as in a
    rationale; None: the probes do not say.
    """

    digit: int
    target_value: float
    p_target: float
    p: tuple[float, ...]  # [10], by leading digit
    answer_digit: int | None = None


@dataclass(frozen=True)
class Answered:
    """What one cell wrote. parsed: None if no number could be read.

    right: None if the task's answers are not numbers.
    """

    address: str
    loss: str
    completion: str
    finish_reason: str | None
    parsed: float | None
    right: bool | None
    error: float | None
    category: str | None
    distributions: tuple[Distribution, ...]


@dataclass(frozen=True)
class Shown:
    """An example of the test split and its answers; `why`: how it was chosen."""

    uid: str
    why: str
    prompt: str
    target: str
    answer: float | None
    image: str | None
    answers: tuple[Answered, ...]


def find_example(group: Group, uid: str | None = None) -> Shown:
    """The example of that name, or the first on which the losses disagree.

    They disagree if some trained losses are right and others wrong; if one cell was named, where
    another is right and it is not, or the reverse; if answers are not numbers, where the texts
    differ. Raises UserError for an unknown name.
    """
    addresses = [str(address) for address in group.cells["address"]]
    scores = _read(group, "scores", _SCORES)
    where = f"{group.run.path} has no"
    if scores.empty:
        raise UserError(f"{where} scores of {group.title['task']}: run it again.")
    if uid is None:
        uid, why = _find_disagreement(group, scores)
    elif uid in set(scores["uid"]):
        why = "asked for"
    else:
        near = did_you_mean(uid, list(dict.fromkeys(scores["uid"]))[:_KNOWN])
        other = near if near.startswith("did") else f"the first is {scores['uid'].iloc[0]}."
        raise UserError(f"{where} example '{uid}' of {group.title['task']}: {other}")
    score_of = {row["address"]: row for row in _rows(scores, uid)}
    completions = _rows(group.run.read("completions", None, addresses), uid)
    if not completions:
        raise UserError(f"{where} completions of '{uid}': run it again.")
    probes = _rows(_read(group, "probes", _PROBES).sort_values("digit"), uid)
    asked = completions[0]
    return Shown(
        uid=uid,
        why=why,
        prompt=str(asked["prompt"]),
        target=str(asked["target"]),
        answer=_number(next(iter(score_of.values()))["answer"]),
        image=_text(asked.get("image")) or None,
        answers=tuple(
            _answered(row, score_of[row["address"]], probes)
            for row in completions
            if row["address"] in score_of
        ),
    )


def _read(group: Group, file: CellFile, columns: Sequence[str]) -> pd.DataFrame:
    """The columns of a file of the group's cells; missing values for those that no file has."""
    found = group.run.read(file, columns, group.cells["address"])
    return found.reindex(columns=["address", *columns])


def _rows(frame: pd.DataFrame, uid: str) -> list[dict[Any, Any]]:
    """The rows of one example."""
    return frame[frame["uid"] == uid].to_dict("records") if len(frame) else []


def _find_disagreement(group: Group, scores: pd.DataFrame) -> tuple[str, str]:
    """The name of the first example on which the losses disagree, else of the first one."""
    first = scores.loc[scores["address"] == scores["address"].iloc[0], "uid"]
    losses = group.cells.set_index("address")["loss"].astype("str")
    losses = losses[losses.index.isin(scores["address"])]
    trained = losses[losses != "base"]
    compared = losses if len(trained) < 2 else trained
    numbers = scores["answer"].notna().any()
    read = scores if numbers else _read(group, "completions", ("uid", "completion"))
    read = read[read["address"].isin(compared.index)].drop_duplicates(["address", "uid"])
    table = read.astype({"address": "str"}).pivot(
        index="uid", columns="address", values="exact" if numbers else "completion"
    )
    table = table.dropna()  # examples that all of them have
    if group.named is not None and group.named in table and table.shape[1] > 1:
        differ = table.drop(columns=group.named).ne(table[group.named], axis=0).any(axis=1)
        why = f"the first where {losses[group.named]} and another loss differ"
    else:
        differ = table.nunique(axis=1) > 1
        why = "the first where the losses differ"
    ranked = [str(uid) for uid in first if differ.get(uid, False)]
    if ranked:
        return ranked[0], f"{why}, one of {len(ranked):,} of {len(table):,}"
    return str(first.iloc[0]), "the first one: the losses never differ in being right"


def _answered(row: Mapping[str, Any], score: Mapping[str, Any], probes: list[Any]) -> Answered:
    return Answered(
        address=row["address"],
        loss=str(row["loss"]),
        completion=str(row["completion"]),
        finish_reason=_text(row.get("finish_reason")),
        parsed=_number(score["parsed"]),
        right=None if math.isnan(score["answer"]) else bool(score["exact"]),
        error=_number(score["error"]),
        category=_text(score["category"]),
        distributions=tuple(
            Distribution(
                digit=int(probe["digit"]),
                target_value=float(probe["target_value"]),
                p_target=float(probe["p_target"]),
                p=tuple(float(probe[name]) for name in _DIGITS),
                answer_digit=None
                if math.isnan(probe["answer_digit"])
                else int(probe["answer_digit"]),
            )
            for probe in probes
            if probe["address"] == row["address"]
        ),
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: Any) -> float | None:
    """A finite number; None: it is missing."""
    return float(value) if value is not None and math.isfinite(float(value)) else None
