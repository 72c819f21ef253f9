"""What the readers of prediction files exchange: rows as they stand, and predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import UserError


@dataclass(frozen=True, slots=True)
class Row:
    """One entry of a file; `place` is how an error names it: "line 3", "row 3", "entry 3"."""

    place: str
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Prediction:
    """One completion, and what the file says of it.

    id: a uid or a position in the split; None: the file has no ids. finish_reason: "length" where
    the completion was cut off. target: what the file takes for the right answer, which is only
    held against the example's own.
    """

    place: str
    id: str | int | None
    completion: str
    finish_reason: str | None = None
    target: str | None = None


@dataclass(frozen=True, slots=True)
class Predictions:
    """A file that was read. positions: its ids are positions by its format, and never uids."""

    path: Path
    form: str
    rows: Sequence[Prediction]
    positions: bool = False


def fault(path: Path, place: str, what: str) -> UserError:
    """The error of one entry of a file; `what` ends with the remedy."""
    return UserError(f"{path}, {place}: {what}")


def shown(value: object) -> str:
    """A value in an error: in quotes where it is a text, and cut where it is long."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"


def text_of(path: Path, place: str, name: str, value: object) -> str:
    """A completion as text that every file can hold: half a surrogate pair becomes "?".

    Raises UserError for what is no text.
    """
    if not isinstance(value, str):
        raise fault(
            path, place, f"{name} is {shown(value)} and no text: write a text, which may be empty."
        )
    return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")
