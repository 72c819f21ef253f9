"""How the rows of a table fit the width of a terminal: whole, or with cells in several lines."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from typing import NamedTuple

import pandas as pd

from .style import spaced
from .tables import is_numeric

LEAST, LEAST_BROKEN = 9, 16
"""Letters of a line that labels keep, and those whose words are broken: shorter lines make a row
too high."""


class Layout(NamedTuple):
    """The cells as they are shown, and the width of each column (None: as wide as it is)."""

    rows: pd.DataFrame
    widths: list[int] | list[None]
    whole_cells: bool = True

    @classmethod
    def too_wide(cls, rows: pd.DataFrame) -> Layout:
        """That of a table that does not fit."""
        return cls(_broken(rows), [None] * rows.shape[1], whole_cells=False)


def choose_layout(rows: pd.DataFrame, width: int, *, labels: bool = False) -> Layout | None:
    """The first way to show the rows in that width; None: there is none.

    `labels`: headings, and then the labels of the first column, go in several lines before numbers
    do.
    """
    for shown, whole_names, whole_cells in _ways(rows, width, labels):
        widths = _widths(shown, whole_names=whole_names)
        if _total(widths) <= width:
            return Layout(shown, [None] * len(widths) if whole_names else widths, whole_cells)
    return None


def _ways(
    rows: pd.DataFrame, width: int, labels: bool
) -> Iterator[tuple[pd.DataFrame, bool, bool]]:
    """Cells, whether headings stay whole, and whether numbers do: the best way first."""
    yield rows, True, True
    if labels:
        yield rows, False, True
        yield _folded(rows, width, whole_names=True), True, True
        yield _folded(rows, width, whole_names=False), False, True
        yield _folded(rows, width, whole_names=False, break_words=True), False, True
    broken = _broken(rows)
    yield broken, True, False
    yield broken, False, False
    if labels:
        yield _folded(broken, width, whole_names=False, break_words=True), False, False


def _broken(rows: pd.DataFrame) -> pd.DataFrame:
    """With the interval, deviation or share of each value in a second line."""
    return rows.map(lambda cell: re.sub(r" (?=\[|± |/ |\(\d)", "\n", cell))


def _folded(
    rows: pd.DataFrame, width: int, *, whole_names: bool, break_words: bool = False
) -> pd.DataFrame:
    """With the labels of the first column in lines that leave room for the other columns;
    `break_words`: words longer than a line are broken."""
    first, *others = rows.columns
    room = width - _total(_widths(rows[others], whole_names=whole_names)) - 2
    if is_numeric(rows[first]) or room < (LEAST_BROKEN if break_words else LEAST):
        return rows
    lines = [
        cell
        if len(cell) <= room
        else textwrap.fill(spaced(cell), room, break_long_words=break_words)
        for cell in rows[first]
    ]
    return rows.assign(**{str(first): lines})


def _widths(rows: pd.DataFrame, *, whole_names: bool = True) -> list[int]:
    """The width of each column on a terminal; `whole_names=False` breaks headings at spaces."""
    found = []
    for name in rows.columns:
        lines = [*([name] if whole_names else name.split()), *"\n".join(rows[name]).split("\n")]
        found.append(max(map(len, lines)))
    return found


def _total(widths: list[int]) -> int:
    """The width of a table, which has two spaces between columns."""
    return sum(widths) + 2 * (len(widths) - 1)
