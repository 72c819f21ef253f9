"""A table on a terminal: within its width, whatever that takes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import pandas as pd

from .tables import DASH, as_text, bold_cells, constant_line, is_numeric, mark_bold, varying

if TYPE_CHECKING:
    from rich.console import RenderableType


def to_terminal(
    frame: pd.DataFrame, title: str, caption: str = "", width: int = 100
) -> RenderableType:
    """The table for a terminal of that width.

    Columns that never change go in a line above the table. Where that does not save enough, the
    interval, deviation or share of a value goes in a second line of its cell; then each value of
    the first column (the model, the task) gets a table of its own; and the columns that are still
    too many go on in further tables below. Columns that
    `frame.attrs["values"]` names stay in the table, so that a value never reads like a setting.
    """
    from rich.console import Group
    from rich.text import Text

    text = mark_bold(as_text(frame), lambda cell: re.sub(r"^\S+", r"\g<0>*", cell))
    parts: list[RenderableType] = [Text(title, style="bold")]
    for at, block in enumerate(_fitting(text, width)):
        parts += [*([Text("")] if at else []), *_block(block, width)]
    return Group(*parts, *([Text(caption, style="dim")] if caption else []))


def _fitting(text: pd.DataFrame, width: int) -> list[pd.DataFrame]:
    """The table, or parts of it that each fit: one for each value of its first columns, and then
    one for as many columns as fit."""
    rows = varying(text)
    if rows.empty or _fits(rows, width):
        return [text]
    parts = [part for _, part in text.groupby(rows.columns[0], sort=False)]
    if len(parts) in (1, len(text)):
        return _columns_that_fit(text, width)
    return [block for part in parts for block in _fitting(part, width)]


def _columns_that_fit(text: pd.DataFrame, width: int) -> list[pd.DataFrame]:
    """Parts with some of the columns each; what a row is of stands in every part."""
    rows = varying(text)
    names = list(rows.columns)
    first = next((at for at, name in enumerate(names) if is_numeric(text[name])), 0)
    keys, parts = names[:first], [names[:first]]
    for name in names[first:]:
        if len(parts[-1]) > first and not _fits(rows[[*parts[-1], name]], width):
            parts.append(keys)
        parts[-1] = [*parts[-1], name]
    if not keys or any(not _fits(rows[part], width) for part in parts):
        return [text]
    fixed = [name for name in text.columns if name not in names]
    return [text[[*fixed, *part] if at == 0 else part] for at, part in enumerate(parts)]


def _block(text: pd.DataFrame, width: int) -> list[RenderableType]:
    """A table, below a line with the columns that never change."""
    from rich.table import Table
    from rich.text import Text

    rows, values, bold = varying(text), {*text.attrs.get("values", ())}, bold_cells(text)
    if values and len(text) == 1 and not _fits(rows, width):
        rows = rows[[n for n in rows.columns if n in values and rows[n].iloc[0] != DASH]]
    widths: list[int] | list[None] = [None] * rows.shape[1]
    if _total(_widths(rows)) > width:
        rows = _broken(rows)
        least = _widths(rows, whole_names=False)
        if _total(_widths(rows)) > width >= _total(least):
            widths = least
    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="bold")
    for name, size in zip(rows.columns, widths, strict=True):
        side: Literal["left", "right"] = "right" if is_numeric(text[name]) else "left"
        table.add_column(Text(name), justify=side, width=size, overflow="fold")
    for at, row in rows.iterrows():
        cells = ((cell, "bold" if (at, name) in bold else "") for name, cell in row.items())
        table.add_row(*(Text(cell, style) for cell, style in cells))
    line = constant_line(text, rows)
    return [*([Text(line)] if line else []), table]


def _broken(rows: pd.DataFrame) -> pd.DataFrame:
    """With the interval, deviation or share of each value in a second line."""
    return rows.map(lambda cell: re.sub(r" (?=\[|± |/ |\(\d)", "\n", cell))


def _fits(rows: pd.DataFrame, width: int) -> bool:
    """Whether the table is no wider than that when cells and headings are broken into lines."""
    return _total(_widths(_broken(rows), whole_names=False)) <= width


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
