"""What the readers of prediction files exchange: rows, predictions, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import UserError


class Row(NamedTuple):
    """One entry of a file; `place` is how an error names it: "line 3", "row 3", "entry 3"."""

    place: str
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Prediction:
    """One completion, and what the file says of it.

    id: a uid or a position in the split; None: the file has no ids. finish_reason: "length" if the
    completion was cut off. target: what the file takes for the right answer, which is only
    compared with the example's own.
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


class RowError(Exception):
    """What is wrong with an entry of a file, and the remedy."""


@contextmanager
def located(path: Path, place: str) -> Iterator[None]:
    """Inside, a RowError becomes a UserError that also names the file and the place."""
    try:
        yield
    except RowError as error:
        raise UserError(f"{path}, {place}: {error}") from error


def shown(value: object) -> str:
    """A value in an error: in quotes if it is a text, and cut if it is long."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"


def text_of(name: str, value: object) -> str:
    """A completion as text that every file can hold: half a surrogate pair becomes "?".

    Raises RowError for anything that is not text.
    """
    if not isinstance(value, str):
        raise RowError(f"{name} is {shown(value)}, not text: write a string, which may be empty.")
    return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")


def target_of(values: Mapping[str, Any]) -> str | None:
    """The target of a row, if it has one."""
    target = values.get("target")
    return str(target) if isinstance(target, (str, int, float)) else None


def id_of(value: object) -> str | int:
    """An id, which is a text or an integer. Raises RowError for anything else."""
    if isinstance(value, float) and value.is_integer():  # pandas turns integers into floats
        value = int(value)
    if isinstance(value, str) and value.strip():
        return value.strip()
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise RowError(
        f"the id is {shown(value)}: give the uid of an example, or its position in the split."
    )
