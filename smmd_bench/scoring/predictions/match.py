"""Which completion answers which example: by uid, by position, or in order."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ...contracts import Example, Task
from ...errors import UserError
from .plain import ID_COLUMNS
from .rows import Prediction, Predictions, fault, shown

if TYPE_CHECKING:
    import pandas as pd

By = Literal["uid", "position", "order"]
_INTEGER = re.compile(r"\d{1,18}", re.ASCII)


@dataclass(frozen=True)
class Matched:
    """The predictions of a file by the index of their example, and how they were matched."""

    file: Predictions
    by: By
    found: Mapping[int, Prediction]


def match(
    file: Predictions, task: Task, examples: Sequence[Example], scope: str, *, partial: bool = False
) -> Matched:
    """Match the predictions of a file with the examples; `scope` names these in errors.

    Raises UserError for an id that is unknown or stands twice, a target that is not the example's,
    and, unless `partial`, for an example without a completion.
    """
    uids = {example.uid: at for at, example in enumerate(examples)}
    by = _kind(file, uids)
    if by == "order" and len(file.rows) != len(examples):
        raise UserError(
            f"{file.path} has {len(file.rows)} rows, and {scope} are {len(examples)}: without an "
            f"id column rows are taken in order, so add one ({', '.join(ID_COLUMNS)}), name yours "
            "with --id-column, or give --limit where the rows are those of the first examples."
        )
    found: dict[int, Prediction] = {}
    for row, prediction in enumerate(file.rows):
        at = row if by == "order" else _index(file, prediction, by, uids, scope)
        if at in found:
            raise fault(
                file.path,
                prediction.place,
                f"the id {shown(prediction.id)} stands in {found[at].place} already: keep one of "
                "them.",
            )
        found[at] = prediction
        _check_target(file, prediction, task, examples[at])
    if len(found) < len(examples) and not partial:
        _lacks(file, by, found, examples, scope)
    return Matched(file, by, found)


def completions_frame(
    examples: Sequence[Example], predictions: Sequence[Prediction]
) -> pd.DataFrame:
    """The frame of `completions.parquet`; `finish_reason` is a column where the file has any."""
    import pandas as pd

    columns: dict[str, list[Any]] = {
        "uid": [example.uid for example in examples],
        "prompt": [example.prompt for example in examples],
        "target": [example.target for example in examples],
        "completion": [prediction.completion for prediction in predictions],
    }
    if any(prediction.finish_reason is not None for prediction in predictions):
        columns["finish_reason"] = [prediction.finish_reason for prediction in predictions]
    for name in dict.fromkeys(name for example in examples for name in example.attributes):
        columns[name] = [example.attributes.get(name) for example in examples]
    return pd.DataFrame(columns)


def _kind(file: Predictions, uids: Mapping[str, int]) -> By:
    ids = [prediction.id for prediction in file.rows]
    if ids[0] is None:
        return "order"
    whole = all(isinstance(i, int) or _INTEGER.fullmatch(str(i)) for i in ids)
    if file.positions or (whole and not any(str(i) in uids for i in ids)):
        return "position"
    return "uid"


def _index(
    file: Predictions, prediction: Prediction, by: By, uids: Mapping[str, int], scope: str
) -> int:
    if by == "uid":
        at = uids.get(str(prediction.id))
        if at is not None:
            return at
        raise fault(
            file.path,
            prediction.place,
            f"the id {shown(prediction.id)} is none of {scope} (the first is {next(iter(uids))}): "
            "check --task, --split, --data-seed and --limit.",
        )
    at = int(str(prediction.id))
    if 0 <= at < len(uids):
        return at
    raise fault(
        file.path,
        prediction.place,
        f"the id {at} is no position within {scope}, which are 0 to {len(uids) - 1}: check --task, "
        "--split and --limit.",
    )


def _check_target(file: Predictions, prediction: Prediction, task: Task, example: Example) -> None:
    """Ids and positions say little: another data seed or level has the same ones."""
    if prediction.target is None or prediction.target == example.target:
        return
    theirs, ours = task.parse(prediction.target), task.parse(example.target)
    if theirs is not None and ours is not None and theirs.value != ours.value:
        raise fault(
            file.path,
            prediction.place,
            f"its target {shown(prediction.target)} is not that of the example {example.uid}, "
            f"{shown(example.target)}: check --task, --split and --data-seed, or leave out the "
            "column target.",
        )  # fmt: skip


def _lacks(
    file: Predictions,
    by: By,
    found: Mapping[int, Prediction],
    examples: Sequence[Example],
    scope: str,
) -> None:
    missing = [at for at in range(len(examples)) if at not in found]
    first = examples[missing[0]].uid if by == "uid" else f"position {missing[0]}"
    beginning = missing[0] == len(found)
    limit = f"--limit {len(found)} to score the first ones, or " if beginning and found else ""
    raise UserError(
        f"{file.path} has no completion for {len(missing)} of {scope} (the first: {first}): add "
        f"them, or give {limit}--partial to score those that are there."
    )


def spelled(matched: Matched) -> str:
    """One line for people: the format, and what was taken for the id."""
    how = {
        "uid": "by uid",
        "position": "by id, as the position of the example in the split (from 0)",
        "order": "without ids, taken in the order of the examples",
    }[matched.by]
    return f"{matched.file.path}: {matched.file.form}, {len(matched.found):,} completions {how}"
