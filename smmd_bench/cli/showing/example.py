"""One example: what was asked, and what each loss answered, with its digit distributions."""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import UserError
from .cell import Group

if TYPE_CHECKING:
    import pandas as pd

DIGITS = tuple(f"p{digit}" for digit in range(10))
_SCORES = ("uid", "answer", "parsed", "valid", "exact", "error", "category", "truncated")
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
    """What one cell wrote. parsed: None where no number could be read.

    right: None where the answers of the task are no numbers.
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
    image: Path | None
    answers: tuple[Answered, ...]


def find_example(group: Group, uid: str | None = None) -> Shown:
    """The example of that name, or the first on which the losses disagree.

    They disagree where some trained losses are right and others wrong; where one cell was named,
    where another is right and it is not, or the reverse; where answers are no numbers, where the
    texts differ. Raises UserError for an unknown name.
    """
    scores = {str(a): _scores(group, str(a)) for a in group.cells["address"]}
    scores = {address: frame for address, frame in scores.items() if len(frame)}
    if not scores:
        raise UserError(f"{group.run.path} has no scores of {group.title['task']}: run it again.")
    if uid is None:
        uid, why = _disagreement(group, scores)
    else:
        if all(uid not in set(frame["uid"]) for frame in scores.values()):
            raise UserError(_unknown(group, uid, list(next(iter(scores.values()))["uid"])))
        why = "asked for"
    answers, asked = [], None
    for cell in group.cells.itertuples():
        address = str(cell.address)
        if address not in scores or uid not in set(scores[address]["uid"]):
            continue
        completions = _rows(group, "completions", address, uid)
        if completions.empty:
            continue
        asked = completions.iloc[0] if asked is None else asked
        own = scores[address]
        score = own[own["uid"] == uid].iloc[0]
        answers.append(_answered(group, address, str(cell.loss), completions.iloc[0], score))
    if asked is None:
        raise UserError(f"{group.run.path} has no completions of '{uid}': run it again.")
    first = next(iter(scores.values()))
    answer = [*first.loc[first["uid"] == uid, "answer"]] if "answer" in first else []
    image = asked.get("image")
    return Shown(
        uid=uid,
        why=why,
        prompt=str(asked["prompt"]),
        target=str(asked["target"]),
        answer=_number(answer[0]) if answer else None,
        image=Path(image) if isinstance(image, str) and image else None,
        answers=tuple(answers),
    )


def _unknown(group: Group, uid: str, known: list[str]) -> str:
    near = difflib.get_close_matches(uid, known[:_KNOWN], n=3)
    other = f"did you mean {' or '.join(near)}?" if near else f"the first is {known[0]}."
    return f"{group.run.path} has no example '{uid}' of {group.title['task']}: {other}"


def _disagreement(group: Group, scores: dict[str, pd.DataFrame]) -> tuple[str, str]:
    """The name of the first example on which the losses disagree, else of the first one."""
    import pandas as pd

    first = next(iter(scores.values()))
    scored = group.cells[group.cells["address"].isin(list(scores))]
    trained = scored[scored["loss"] != "base"]
    trained = scored if len(trained) < 2 else trained
    numbers = _reads_numbers(first)
    columns = {
        str(a): scores[str(a)].set_index("uid")["exact"]
        if numbers
        else group.run.read("completions", ["uid", "completion"], [str(a)]).set_index("uid")[
            "completion"
        ]
        for a in trained["address"]
    }
    columns = {a: column[~column.index.duplicated()] for a, column in columns.items()}
    table = pd.DataFrame(columns).dropna()  # examples that all of them have
    if group.named is not None and group.named in table and table.shape[1] > 1:
        others = table.drop(columns=group.named)
        differ = others.ne(table[group.named], axis=0).any(axis=1)
        own = str(group.cells.set_index("address").loc[group.named, "loss"])
        why = f"the first where {own} and another loss differ"
    else:
        differ = table.nunique(axis=1) > 1
        why = "the first where the losses differ"
    ranked = [uid for uid in first["uid"] if uid in set(differ.index[differ])]
    count = f", one of {len(ranked):,} of {len(table):,}"
    if ranked:
        return str(ranked[0]), why + count
    return str(first["uid"].iloc[0]), "the first one: the losses never differ in being right"


def _scores(group: Group, address: str) -> pd.DataFrame:
    return group.run.read("scores", list(_SCORES), [address])


def _reads_numbers(scores: pd.DataFrame) -> bool:
    return "answer" in scores and bool(scores["answer"].notna().any())


def _rows(group: Group, name: Any, address: str, uid: str) -> pd.DataFrame:
    """The rows of one example in a file of a cell; probes without their full vectors."""
    import pyarrow.parquet as pq

    cell = group.run.current(address)
    if not cell.has(name):
        return _nothing()
    file = cell.folder / f"{name}.parquet"
    there = [c for c in pq.read_schema(file).names if c != "vector"]
    frame: pd.DataFrame = pq.read_table(
        file, columns=there, filters=[("uid", "=", uid)]
    ).to_pandas()
    return frame


def _nothing() -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame()


def _answered(
    group: Group, address: str, loss: str, completion: pd.Series, score: pd.Series
) -> Answered:
    probes = _rows(group, "probes", address, str(completion["uid"]))
    numbers = "answer" in score and not math.isnan(float(score["answer"]))
    reason = completion.get("finish_reason")
    category = score.get("category")
    return Answered(
        address=address,
        loss=loss,
        completion=str(completion["completion"]),
        finish_reason=reason if isinstance(reason, str) else None,
        parsed=_number(score.get("parsed")),
        right=bool(score["exact"]) if numbers else None,
        error=_number(score.get("error")),
        category=category if isinstance(category, str) else None,
        distributions=tuple(
            Distribution(
                digit=int(row["digit"]),
                target_value=float(row["target_value"]),
                p_target=float(row["p_target"]),
                p=tuple(float(row[name]) for name in DIGITS),
                answer_digit=int(row["answer_digit"]) if "answer_digit" in row else None,
            )
            for _, row in (probes.sort_values("digit") if len(probes) else probes).iterrows()
        ),
    )


def _number(value: Any) -> float | None:
    """A finite number; None for what is missing."""
    return float(value) if value is not None and math.isfinite(float(value)) else None
