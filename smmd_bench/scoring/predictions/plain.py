"""Predictions in columns: one with the completion and, if there is one, one with the id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import UserError
from .rows import Prediction, Predictions, Row, RowError, id_of, located, target_of, text_of

COLUMNS = {
    "id": ("uid", "id", "doc_id", "custom_id"),
    "completion": ("completion", "prediction", "response", "output", "generated_text"),
}
"""The usual names of each column; the columns `finish_reason` and `target` are read, too."""


def plain_predictions(
    path: Path,
    form: str,
    rows: Sequence[Row],
    id_column: str | None,
    completion_column: str | None,
) -> Predictions:
    """The predictions of rows with the named columns, or else those that the first row has.

    Raises UserError for a missing or ambiguous column, rows with other columns than the first, a
    completion that is not text, and an id that is none.
    """
    first = rows[0]
    given = {"id": id_column, "completion": completion_column}
    names = {role: _column(path, first.values, role, name) for role, name in given.items()}
    usual = {name for role in COLUMNS if given[role] is None for name in COLUMNS[role]}
    wanted = {name for name in names.values() if name is not None}
    found = []
    for row in rows:
        with located(path, row.place):
            if names["completion"] is None:
                raise RowError(
                    f"has no completion column (columns: {_listed(first.values)}; expected one of "
                    f"{', '.join(COLUMNS['completion'])}): name it with --completion-column."
                )
            if not wanted <= row.values.keys() or (usual & row.values.keys()) - wanted:
                raise RowError(
                    f"has the columns {_listed(row.values)}, but {first.place} has "
                    f"{_listed(first.values)}: give every row the same columns."
                )
            found.append(_prediction(row, names["id"], names["completion"]))
    return Predictions(path, form, found)


def _prediction(row: Row, id_name: str | None, completion_name: str) -> Prediction:
    values = row.values
    finish_reason = values.get("finish_reason")
    return Prediction(
        place=row.place,
        id=None if id_name is None else id_of(values[id_name]),
        completion=text_of(f"the {completion_name}", values[completion_name]),
        finish_reason=str(finish_reason) if finish_reason else None,
        target=target_of(values),
    )


def _column(path: Path, first: Mapping[str, Any], role: str, given: str | None) -> str | None:
    """The column of a role in the first row; None: there is none."""
    if given is not None and given not in first:
        raise UserError(
            f"{path} has no column '{given}' (it has {_listed(first)}): check --{role}-column."
        )
    found = [given] if given is not None else [name for name in COLUMNS[role] if name in first]
    if len(found) > 1:
        raise UserError(
            f"{path} has several possible {role} columns ({', '.join(found)}): choose one with "
            f"--{role}-column."
        )
    return found[0] if found else None


def _listed(values: Mapping[str, Any]) -> str:
    return ", ".join(map(str, values)) or "none"
