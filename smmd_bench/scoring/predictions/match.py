"""Which completion answers which example: by uid, prompt, position or in order."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ...contracts import Example, Task
from ...errors import UserError
from ..score import completions_frame
from .evidence import Questions, check_targets, without_prompts
from .read import COLUMNS, Prediction, Predictions
from .rows import shown

if TYPE_CHECKING:
    import pandas as pd

By = Literal["uid", "position", "prompt", "order"]
_DIGITS = re.compile(r"(\d{1,18})(\.0*)?", re.ASCII)
_SAID: dict[By, str] = {
    "uid": "by uid",
    "position": "by id, as the position of the example in the split (from 0)",
    "prompt": "by prompt",
    "order": "without ids, matched in the order of the examples",
}


@dataclass(frozen=True)
class Matched:
    """The predictions of a file by the index of their example, and how they were matched.

    notes: what else people should know about it.
    """

    file: Predictions
    by: By
    found: Mapping[int, Prediction]
    notes: Sequence[str]

    def __str__(self) -> str:
        """One line for people: the format, and what was taken for the id."""
        file = self.file
        said = f"{file.path}: {file.form}, {len(self.found):,} completions {_SAID[self.by]}"
        return "; ".join([said, *self.notes])

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
    and there is none of others. A prompt that every completion repeats is taken off.

    Raises UserError for an id that is unknown or appears twice, a prompt or target that is not the
    example's, and, unless `partial`, for an example without a completion.
    """
    questions = Questions(examples)
    by, places, notes = _places(file, questions, scope)
    asked, rows = len(examples) if first is None else min(first, len(examples)), len(file.rows)
    enough = rows == asked if first is None else asked <= rows <= len(examples)
    if by == "order" and not enough:
        raise UserError(
            f"{file.path} has {rows} rows for {scope}: without an id column, rows are "
            f"matched in order, so add one ({', '.join(COLUMNS['id'])}), name yours with "
            "--id-column, or give --limit if the rows answer the first examples."
        )
    found: dict[int, Prediction] = {}
    for at, prediction in zip(places, file.rows, strict=True):
        if at in found:
            raise prediction.row.error(
                f"the example {examples[at].uid} is already in {found[at].place}: keep one of them."
            )
        found[at] = prediction
        questions.check(prediction, at)
    check_targets(found, task, examples)
    found = {at: prediction for at, prediction in found.items() if at < asked}
    missing = [at for at in range(asked) if at not in found]
    if missing and not partial:
        where = f"position {missing[0]}" if by == "position" else examples[missing[0]].uid
        count = len(found) if missing[0] == len(found) else 0
        limit = f"--limit {count} to score the first ones, or " if count else ""
        raise UserError(
            f"{file.path} has no completion for {len(missing):,} of {scope} (the first: {where}): "
            f"add them, or give {limit}--partial to score the others."
        )
    shorter, repeated = without_prompts(found, examples)
    return Matched(file, by, shorter, [*notes, *repeated])


def _places(
    file: Predictions, questions: Questions, scope: str
) -> tuple[By, Sequence[int], Sequence[str]]:
    """How rows name their examples, the index of the example of each, and what else to say.

    A uid wins, then prompts that tell all rows apart, then integers, then the order. The ids of
    lm-eval, and of a column that the user named, are taken at their word.
    """
    rows, decisive = file.rows, file.positions or file.named
    uids = {example.uid: at for at, example in enumerate(questions.examples)}
    given = rows[0].id is not None
    columns: dict[str, list[Any]] = {"id": [row.id for row in rows]} if given else {}
    if not decisive:
        columns |= {name: [row.index.get(name) for row in rows] for name in rows[0].index}
    for name, values in {} if file.positions else columns.items():
        known = [str(value) in uids for value in values]
        if all(known) or (name == "id" and any(known)):
            of_rows = zip(rows, values, strict=True)
            return "uid", [_of_uid(row, value, uids, scope) for row, value in of_rows], ()
    whole = {name: [*map(_integer, values)] for name, values in columns.items()}
    numbers = {name: [n for n in found if n is not None] for name, found in whole.items()}
    numbers = {name: found for name, found in numbers.items() if len(found) == len(rows)}
    if not decisive and (asked := questions.find(rows)) is not None:
        differ = [repr(name) for name in columns if numbers.get(name) != asked]
        if columns and not differ:
            return "position", asked, ()
        return "prompt", asked, [f"{', '.join(differ)}: another order"] if differ else ()
    if given and "id" not in numbers:
        return "uid", [_of_uid(row, row.id, uids, scope) for row in rows], ()
    return _by_number(file, numbers, len(uids), scope)


def _by_number(
    file: Predictions, numbers: Mapping[str, list[int]], count: int, scope: str
) -> tuple[By, Sequence[int], Sequence[str]]:
    """As `_places`, by columns of integers: the first counts, and none may contradict it."""
    rows = file.rows
    if not numbers:
        return "order", range(len(rows)), [f"{name!r} is not used" for name in rows[0].index]
    name, places = next(iter(numbers.items()))
    from_one = [*range(1, len(rows) + 1)] if len(rows) > 1 else []
    usable = [
        name
        for name, found in numbers.items()
        if len({*found}) == len(rows) and {*found} <= {*range(count)} and sorted(found) != from_one
    ]
    if rows[0].id is None:
        if name in usable:
            return "position", places, [f"the column is {name!r}"]
        if len({*places}) < len(rows) or sorted(places) == places:
            return "order", range(len(rows)), [f"{name!r} is not used"]
        raise UserError(
            f"{file.path} has a column {name!r} that is neither the position of each example in "
            f"{scope}, from 0, nor in order: add a column with the uid of each."
        )
    for row, at in zip(rows, places, strict=True):
        if not 0 <= at < count:
            raise row.row.error(
                f"the id {at} is not a position in {scope} (0 to {count - 1}): check --task, "
                "--split and --limit."
            )
    if other := [n for n in usable if n != name and numbers[n] != places]:
        raise UserError(
            f"{file.path} has ids and a column {other[0]!r} that name different examples: choose "
            "one with --id-column."
        )
    if sorted(places) == from_one and not any(row.prompts or row.targets for row in rows):
        raise UserError(
            f"{file.path} has ids that count from 1, but positions in the split count from 0: "
            "subtract 1, or give the uid of each example."
        )
    return "position", places, ()


def _of_uid(row: Prediction, value: object, uids: Mapping[str, int], scope: str) -> int:
    if str(value) in uids:
        return uids[str(value)]
    raise row.row.error(
        f"the id {shown(value)} is not one of {scope} (the first is {next(iter(uids))}): check "
        "--task, --split, --data-seed and --limit."
    )


def _integer(value: object) -> int | None:
    """A whole number, however it is written: 7, 7.0, "007", "7.0"."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and (found := _DIGITS.fullmatch(value.strip())):
        return int(found[1])
    return value if isinstance(value, int) and not isinstance(value, bool) else None
