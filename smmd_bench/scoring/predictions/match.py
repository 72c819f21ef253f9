"""Which completion answers which example: by uid, by position, or in order."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ...contracts import Example, Task
from ...errors import UserError
from ..score import completions_frame
from .read import COLUMNS, Prediction, Predictions
from .rows import shown

if TYPE_CHECKING:
    import pandas as pd

By = Literal["uid", "position", "order"]
_INTEGER = re.compile(r"\d{1,18}", re.ASCII)
_SAID: dict[By, str] = {
    "uid": "by uid",
    "position": "by id, as the position of the example in the split (from 0)",
    "order": "without ids, matched in the order of the examples",
}


@dataclass(frozen=True)
class Matched:
    """The predictions of a file by the index of their example, and how they were matched."""

    file: Predictions
    by: By
    found: Mapping[int, Prediction]

    def __str__(self) -> str:
        """One line for people: the format, and what was taken for the id."""
        file = self.file
        return f"{file.path}: {file.form}, {len(self.found):,} completions {_SAID[self.by]}"

    def frame(self, examples: Sequence[Example], chosen: Sequence[int]) -> pd.DataFrame:
        """The completions of the chosen examples; with finish reasons if the file has any."""
        found = [self.found[at] for at in chosen]
        columns: dict[str, list[Any]] = {"completion": [p.completion for p in found]}
        reasons = [prediction.finish_reason for prediction in found]
        if any(reason is not None for reason in reasons):
            columns["finish_reason"] = reasons
        return completions_frame([examples[at] for at in chosen], columns)


def match(
    file: Predictions,
    task: Task,
    examples: Sequence[Example],
    scope: str,
    *,
    first: int | None = None,
    partial: bool = False,
) -> Matched:
    """Match the predictions of a file with the examples; `scope` names these in errors.

    first: so many examples are to be scored, and completions of the others are left out; None: all,
    and there is none of others.

    Raises UserError for an id that is unknown or appears twice, a target that is not the example's,
    and, unless `partial`, for an example without a completion.
    """
    uids = {example.uid: at for at, example in enumerate(examples)}
    by = _kind(file, uids)
    asked, rows = len(examples) if first is None else min(first, len(examples)), len(file.rows)
    enough = rows == asked if first is None else asked <= rows <= len(examples)
    if by == "order" and not enough:
        raise UserError(
            f"{file.path} has {rows} rows for {scope}: without an id column, rows are "
            f"matched in order, so add one ({', '.join(COLUMNS['id'])}), name yours with "
            "--id-column, or give --limit if the rows answer the first examples."
        )
    found: dict[int, Prediction] = {}
    for number, prediction in enumerate(file.rows):
        at = number if by == "order" else _index(prediction, by, uids, scope)
        if at in found:
            raise prediction.row.error(
                f"the id {shown(prediction.id)} is already in {found[at].place}: keep one of them."
            )
        found[at] = prediction
        _check_target(prediction, task, examples[at])
    found = {at: prediction for at, prediction in found.items() if at < asked}
    missing = [at for at in range(asked) if at not in found]
    if missing and not partial:
        where = examples[missing[0]].uid if by == "uid" else f"position {missing[0]}"
        count = len(found) if missing[0] == len(found) else 0
        limit = f"--limit {count} to score the first ones, or " if count else ""
        raise UserError(
            f"{file.path} has no completion for {len(missing):,} of {scope} (the first: {where}): "
            f"add them, or give {limit}--partial to score the others."
        )
    return Matched(file, by, found)


def _kind(file: Predictions, uids: Mapping[str, int]) -> By:
    ids = [prediction.id for prediction in file.rows]
    if ids[0] is None:
        return "order"
    whole = all(isinstance(name, int) or _INTEGER.fullmatch(str(name)) for name in ids)
    if file.positions or (whole and not any(str(name) in uids for name in ids)):
        return "position"
    return "uid"


def _index(prediction: Prediction, by: By, uids: Mapping[str, int], scope: str) -> int:
    name = str(prediction.id)
    if by == "uid" and name in uids:
        return uids[name]
    if by == "uid":
        raise prediction.row.error(
            f"the id {shown(prediction.id)} is not one of {scope} (the first is "
            f"{next(iter(uids))}): check --task, --split, --data-seed and --limit."
        )
    if 0 <= int(name) < len(uids):
        return int(name)
    raise prediction.row.error(
        f"the id {name} is not a position in {scope} (0 to {len(uids) - 1}): check --task, --split "
        "and --limit."
    )


def _check_target(prediction: Prediction, task: Task, example: Example) -> None:
    """Another data seed or level has the same ids and positions: only the target tells."""
    if prediction.target is None or prediction.target == example.target:
        return
    theirs, ours = task.parse(prediction.target), task.parse(example.target)
    if theirs is not None and ours is not None and theirs.value != ours.value:
        raise prediction.row.error(
            f"its target {shown(prediction.target)} differs from that of the example "
            f"{example.uid}, {shown(example.target)}: check --task, --split and --data-seed, or "
            "remove the column target."
        )
