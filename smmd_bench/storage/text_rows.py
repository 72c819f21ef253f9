"""Rows as the texts that a prompt and a target are made of, whatever types their columns have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import UserError, did_you_mean
from .data_files import read_rows


def read_texts(file: Path, columns: Sequence[str], **how: Any) -> list[dict[str, str]]:
    """These columns of the rows of a file, as texts; see `spell_rows`. `how` is of `read_rows`."""
    return spell_rows(file, read_named_rows(file, **how), columns)


def read_named_rows(file: Path, **how: Any) -> list[dict[str, Any]]:
    """The rows of `read_rows`, each with the columns of all, whose names have no blanks around."""
    rows = read_rows(file, strict=True, **how)
    names = {name: str(name).strip() for row in rows for name in row}
    return [{name: row.get(column) for column, name in names.items()} for row in rows]


def spell_rows(
    file: Path, rows: Sequence[Mapping[str, Any]], columns: Iterable[str]
) -> list[dict[str, str]]:
    """These columns as texts without blanks around, an absent value as an empty one. Raises
    UserError for a column that the file lacks, and for what is no text, such as a list."""
    asked = [*dict.fromkeys(columns)]
    for name in asked:
        if name not in rows[0]:
            raise UserError(f"{file} has no column '{name}': {did_you_mean(name, rows[0])}")
    texts = []
    for number, row in enumerate(rows, start=1):
        for name in asked:
            problem = _describe_problem(row[name])
            if problem is not None:
                raise UserError(f"{file}, row {number}: its {name} {problem}.")
        texts.append({name: spell_value(row[name]) for name in asked})
    return texts


def _describe_problem(value: Any) -> str | None:
    """Why a value cannot be a text, and the remedy."""
    if isinstance(value, list | dict | bytes):
        return f"is a {type(value).__name__}: name a column of texts or numbers"
    return None


def spell_value(value: Any) -> str:
    """A value as text. A number has the fewest digits that give it in its type, and no exponent:
    18.0 is `18`, 2.5e-05 `0.000025`, and 5.2 is `5.2` in 32 bits, too."""
    if value is None or value != value:  # NaN, and NaT of a date
        return ""
    if isinstance(value, float | np.floating):
        return np.format_float_positional(value, trim="-")
    return format(value, "f") if isinstance(value, Decimal) else str(value).strip()


def is_spelled_anew(value: Any) -> bool:
    """Whether `spell_value` once gave a number another text, which results were made from."""
    is_decimal = isinstance(value, float | np.floating)
    return is_decimal and repr(float(value)).removesuffix(".0") not in ("nan", spell_value(value))
