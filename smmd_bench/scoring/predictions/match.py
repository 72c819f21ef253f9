"""Which completion answers which example: by uid, by position, or in order."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ...contracts import Example, Task
from ...errors import UserError
from .plain import COLUMNS
from .rows import Prediction, Predictions, RowError, located, shown

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


def match(
    file: Predictions, task: Task, examples: Sequence[Example], scope: str, *, partial: bool = False
) -> Matched:
    """Match the predictions of a file with the examples; `scope` names these in errors.

    Raises UserError for an id that is unknown or appears twice, a target that is not the example's,
    and, unless `partial`, for an example without a completion.
    """
    uids = {example.uid: at for at, example in enumerate(examples)}
    by = _kind(file, uids)
    if by == "order" and len(file.rows) != len(examples):
        raise UserError(
            f"{file.path} has {len(file.rows)} rows for {scope}: without an id column, rows are "
            f"matched in order, so add one ({', '.join(COLUMNS['id'])}), name yours with "
            "--id-column, or give --limit if the rows answer the first examples."
        )
    found: dict[int, Prediction] = {}
    for row, prediction in enumerate(file.rows):
        with located(file.path, prediction.place):
            at = row if by == "order" else _index(prediction, by, uids, scope)
            if at in found:
                raise RowError(
                    f"the id {shown(prediction.id)} is already in {found[at].place}: keep one of "
                    "them."
                )
            found[at] = prediction
            _check_target(prediction, task, examples[at])
    if len(found) < len(examples) and not partial:
        _report_missing(file, by, found, examples, scope)
    return Matched(file, by, found)


def completions_frame(
    examples: Sequence[Example], predictions: Sequence[Prediction]
) -> pd.DataFrame:
    """The frame of `completions.parquet`; `finish_reason` is a column if the file has any."""
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
    whole = all(isinstance(name, int) or _INTEGER.fullmatch(str(name)) for name in ids)
    if file.positions or (whole and not any(str(name) in uids for name in ids)):
        return "position"
    return "uid"


def _index(prediction: Prediction, by: By, uids: Mapping[str, int], scope: str) -> int:
    name = str(prediction.id)
    if by == "uid" and name in uids:
        return uids[name]
    if by == "uid":
        raise RowError(
            f"the id {shown(prediction.id)} is not one of {scope} (the first is "
            f"{next(iter(uids))}): check --task, --split, --data-seed and --limit."
        )
    if 0 <= int(name) < len(uids):
        return int(name)
    raise RowError(
        f"the id {name} is not a position in {scope} (0 to {len(uids) - 1}): check --task, --split "
        "and --limit."
    )


def _check_target(prediction: Prediction, task: Task, example: Example) -> None:
    """Another data seed or level has the same ids and positions: only the target tells."""
    if prediction.target is None or prediction.target == example.target:
        return
    theirs, ours = task.parse(prediction.target), task.parse(example.target)
    if theirs is not None and ours is not None and theirs.value != ours.value:
        raise RowError(
            f"its target {shown(prediction.target)} differs from that of the example "
            f"{example.uid}, {shown(example.target)}: check --task, --split and --data-seed, or "
            "remove the column target."
        )


def _report_missing(
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
        f"them, or give {limit}--partial to score the others."
    )
