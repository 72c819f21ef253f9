"""Rows of JSON: one object a line, or one list of objects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ...errors import UserError
from .rows import Row, fault, shown

LINES, LIST = "JSON lines", "JSON list"


def json_rows(path: Path, text: str) -> tuple[str, list[Row]]:
    """Which of the two it is, and its rows. Raises UserError for what is no JSON or no object."""
    if text.lstrip().startswith("["):
        return LIST, _of_list(path, text)
    return LINES, _of_lines(path, text)


def _of_lines(path: Path, text: str) -> list[Row]:
    rows = []
    # Not splitlines(), which also splits at U+2028 and others that may stand within a text.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            place = f"line {number}"
            try:
                value = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise fault(
                    path, place, f"is no JSON ({_reason(error)}): write one JSON object a line."
                ) from error
            rows.append(Row(place, _object(path, place, value)))
    return rows


def _of_list(path: Path, text: str) -> list[Row]:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        place = f"line {error.lineno}" if isinstance(error, json.JSONDecodeError) else "line 1"
        raise fault(
            path, place, f"is no JSON ({_reason(error)}): write one list of JSON objects."
        ) from error
    if not isinstance(values, list):
        raise UserError(f"{path} holds no list: write a list of JSON objects, or one a line.")
    places = [f"entry {number}" for number in range(1, len(values) + 1)]
    return [
        Row(place, _object(path, place, value)) for place, value in zip(places, values, strict=True)
    ]


def _object(path: Path, place: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise fault(
            path, place, f'is {shown(value)} and no JSON object: write {{"id": ..., "completion": '
            "...}."
        )  # fmt: skip
    return value


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return error.msg if isinstance(error, json.JSONDecodeError) else str(error).splitlines()[0]
