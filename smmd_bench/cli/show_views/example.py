"""One example: the question, and what each loss answered, with its digit distributions."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ...errors import UserError, did_you_mean
from .cells import Group

_DIGITS = tuple(f"p{digit}" for digit in range(10))
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
    run, task = group.run.only(group.cells), group.title["task"]
    answers = run.completions
    if answers.empty:
        raise UserError(f"{run.path} has no scores of {task}: run it again.")
    uids = answers["uid"].drop_duplicates()
    if uid is None:
        uid, why = _find_disagreement(group, answers)
    elif uid in set(uids):
        why = "asked for"
    else:
        near = did_you_mean(uid, uids[:_KNOWN])
        other = near if near.startswith("did") else f"the first is {uids.iloc[0]}."
        raise UserError(f"{run.path} has no example '{uid}' of {task}: {other}")
    rows: list[Any] = answers[answers["uid"] == uid].to_dict("records")
    probes = run.read("probes", _PROBES)
    if len(probes):
        probes = probes[probes["uid"] == uid].sort_values("digit")
    digits: list[Any] = probes.to_dict("records")
    return Shown(
        uid=uid,
        why=why,
        prompt=str(rows[0]["prompt"]),
        target=str(rows[0]["target"]),
        answer=_number(rows[0]["answer"]),
        image=_text(rows[0].get("image")) or None,
        answers=tuple(
            _answered(row, [digit for digit in digits if digit["address"] == row["address"]])
            for row in rows
        ),
    )


def _find_disagreement(group: Group, answers: pd.DataFrame) -> tuple[str, str]:
    """The name of the first example on which the losses disagree, else of the first one."""
    first = answers.loc[answers["address"] == answers["address"].iloc[0], "uid"]
    losses = answers.groupby("address", observed=True, sort=False)["loss"].first().astype("str")
    trained = losses[losses != "base"]
    compared = losses if len(trained) < 2 else trained
    read = answers[answers["address"].isin(compared.index)].drop_duplicates(["address", "uid"])
    values = "exact" if answers["answer"].notna().any() else "completion"
    table = read.astype({"address": "str"}).pivot(index="uid", columns="address", values=values)
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


def _answered(row: Mapping[str, Any], probes: list[Any]) -> Answered:
    return Answered(
        address=row["address"],
        loss=str(row["loss"]),
        completion=str(row["completion"]),
        finish_reason=_text(row.get("finish_reason")),
        parsed=_number(row["parsed"]),
        right=None if math.isnan(row["answer"]) else bool(row["exact"]),
        error=_number(row["error"]),
        category=_text(row["category"]),
        distributions=tuple(map(_distribution, probes)),
    )


def _distribution(probe: Mapping[str, Any]) -> Distribution:
    place = _number(probe.get("answer_digit"))
    return Distribution(
        digit=int(probe["digit"]),
        target_value=float(probe["target_value"]),
        p_target=float(probe["p_target"]),
        p=tuple(float(probe[name]) for name in _DIGITS),
        answer_digit=None if place is None else int(place),
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: Any) -> float | None:
    """A finite number; None: it is missing."""
    return float(value) if value is not None and math.isfinite(float(value)) else None
