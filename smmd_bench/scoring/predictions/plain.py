"""Predictions of plain rows: a column with the completion and, where there is one, with the id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import UserError
from .rows import Prediction, Predictions, Row, fault, shown, text_of

ID_COLUMNS = ("uid", "id", "doc_id", "custom_id")
COMPLETION_COLUMNS = ("completion", "prediction", "response", "output", "generated_text")
"""The names that are looked for; the columns `finish_reason` and `target` are read, too."""


def plain_predictions(
    path: Path,
    form: str,
    rows: Sequence[Row],
    id_column: str | None,
    completion_column: str | None,
) -> Predictions:
    """The predictions of rows with the columns given by name, or else guessed by the first row.

    Raises UserError for a missing or ambiguous column, rows with other columns than the first, a
    completion that is no text and an id that is none.
    """
    first = rows[0].values
    id_name = _column(path, first, id_column, ID_COLUMNS, "id")
    completion_name = _column(path, first, completion_column, COMPLETION_COLUMNS, "completion")
    if completion_name is None:
        raise fault(
            path,
            rows[0].place,
            f"there is no column for the completion (but {_names(first)}; looked for: "
            f"{', '.join(COMPLETION_COLUMNS)}): name it with --completion-column.",
        )
    wanted = {name for name in (id_name, completion_name) if name is not None}
    guessed = {
        *(() if id_column else ID_COLUMNS),
        *(() if completion_column else COMPLETION_COLUMNS),
    }
    found = []
    for row in rows:
        keys = row.values.keys()
        if not wanted <= keys or (guessed & keys) - wanted:
            raise fault(
                path,
                row.place,
                f"has the columns {_names(row.values)}, and {rows[0].place} has {_names(first)}: "
                "give every row the same columns.",
            )
        found.append(_prediction(path, row, id_name, completion_name))
    return Predictions(path, form, found)


def checked_id(path: Path, place: str, value: object) -> str | int:
    """An id, which is a text or an integer. Raises UserError for anything else."""
    if isinstance(value, float) and value.is_integer():  # pandas makes integers floats
        value = int(value)
    if isinstance(value, str) and value.strip():
        return value.strip()
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise fault(
        path,
        place,
        f"the id is {shown(value)}: give the uid of an example, or its position in the split.",
    )


def _prediction(path: Path, row: Row, id_name: str | None, completion_name: str) -> Prediction:
    target, finish_reason = row.values.get("target"), row.values.get("finish_reason")
    return Prediction(
        place=row.place,
        id=None if id_name is None else checked_id(path, row.place, row.values[id_name]),
        completion=text_of(
            path, row.place, f"the {completion_name}", row.values[completion_name]
        ),
        finish_reason=str(finish_reason) if finish_reason else None,
        target=str(target) if isinstance(target, (str, int, float)) else None,
    )  # fmt: skip


def _column(
    path: Path,
    first: Mapping[str, Any],
    given: str | None,
    names: Sequence[str],
    role: str,
) -> str | None:
    """The column of a role in the first row; None: there is none."""
    if given is not None and given not in first:
        raise UserError(
            f"{path} has no column '{given}' (it has {_names(first)}): check --{role}-column."
        )
    found = [given] if given is not None else [name for name in names if name in first]
    if len(found) > 1:
        raise UserError(
            f"{path} has several columns that may be the {role} ({', '.join(found)}): name one "
            f"with --{role}-column."
        )
    return found[0] if found else None


def _names(values: Mapping[str, Any]) -> str:
    return ", ".join(str(name) for name in values) or "none"
