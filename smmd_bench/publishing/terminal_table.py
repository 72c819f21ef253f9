"""A table on a terminal: within its width, whatever that takes."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Literal

import pandas as pd

from .tables import DASH, as_text, bold_cells, constant_line, is_numeric, mark_bold, varying
from .terminal_layout import Layout, choose_layout

if TYPE_CHECKING:
    from rich.console import RenderableType


def to_terminal(
    frame: pd.DataFrame, title: str, caption: str = "", width: int = 100
) -> RenderableType:
    """The table for a terminal of that width.

    Columns that never change go in a line above the table. Where that does not save enough, the
    interval, deviation or share of a value goes in a second line of its cell; then each value of
    the first column (the model, the task) gets a table of its own; and the columns that are still
    too many go on in further tables below.

    Columns that `frame.attrs["values"]` names stay in the table, so that a value never reads like a
    setting; they divide no table either. Those of `frame.attrs["optional"]` are left out before a
    cell is broken into lines, in that order; the caption names them.
    """
    from rich.console import Group
    from rich.text import Text

    text = mark_bold(as_text(frame), lambda cell: re.sub(r"^\S+", r"\g<0>*", cell))
    blocks, left = _without_optional(text, width)
    parts: list[RenderableType] = [Text(title, style="bold")]
    for at, block in enumerate(blocks):
        parts += [*([Text("")] if at else []), *_block(block, width)]
    if left:
        caption = f"{caption} Not shown at this width: {', '.join(left)}.".lstrip()
    return Group(*parts, *([Text(caption, style="dim")] if caption else []))


def _without_optional(text: pd.DataFrame, width: int) -> tuple[list[pd.DataFrame], list[str]]:
    """The table in parts that fit, and the optional columns that these lack: the same in all parts
    where that leaves no number in several lines."""
    optional = [name for name in text.attrs.get("optional", ()) if name in text.columns]
    if not optional:
        return _fitting(text, width), []
    parts = [text]
    for whole in (True, False):
        for count in range(len(optional) + 1):
            gone = optional[:count]
            parts = _divided(text.drop(columns=gone), partial(_fits, width=width, whole=whole))
            if all(_fits(part, width, whole) for part in parts):
                blocks = [_with_fixed(text.loc[part.index], gone, width) for part in parts]
                return blocks, [n for n in gone if any(n not in b.columns for b in blocks)]
        if len(parts) > 1:
            return _each_without(optional, [text.loc[part.index] for part in parts], width)
    return _fitting(text, width), []


def _each_without(
    optional: list[str], parts: list[pd.DataFrame], width: int
) -> tuple[list[pd.DataFrame], list[str]]:
    """The same, where each part lacks what it has no room for."""
    found = [_without_optional(part, width) for part in parts]
    lacking = {name for _, left in found for name in left}
    return [b for blocks, _ in found for b in blocks], [n for n in optional if n in lacking]


def _with_fixed(part: pd.DataFrame, gone: list[str], width: int) -> pd.DataFrame:
    """Without the columns `gone`, but for those that never change: they go above the table."""
    rows = _rows(part, width)
    return part.drop(columns=[name for name in gone if name in rows.columns])


def _divided(text: pd.DataFrame, fits: Callable[[pd.DataFrame], bool]) -> list[pd.DataFrame]:
    """The table if it fits, else one for each value of its first columns, as far as they divide
    it."""
    rows = varying(text)
    if rows.empty or fits(text):
        return [text]
    parts = [part for _, part in text.groupby(rows.columns[0], sort=False)]
    if len(parts) in (1, len(text)) or rows.columns[0] in text.attrs.get("values", ()):
        return [text]
    return [block for part in parts for block in _divided(part, fits)]


def _fitting(text: pd.DataFrame, width: int) -> list[pd.DataFrame]:
    """The table, or parts of it that each fit: one for each value of its first columns, and then
    one for as many columns as fit."""
    parts = _divided(text, partial(_fits, width=width))
    return [block for part in parts for block in _columns_that_fit(part, width)]


def _columns_that_fit(text: pd.DataFrame, width: int) -> list[pd.DataFrame]:
    """Parts with some of the columns each; what a row is of stands in every part."""
    if _fits(text, width):
        return [text]
    rows = varying(text)
    names = list(rows.columns)
    first = next((at for at, name in enumerate(names) if is_numeric(text[name])), 0)
    keys, parts = names[:first], [names[:first]]
    for name in names[first:]:
        if len(parts[-1]) > first and choose_layout(rows[[*parts[-1], name]], width) is None:
            parts.append(keys)
        parts[-1] = [*parts[-1], name]
    if not keys or any(choose_layout(rows[part], width) is None for part in parts):
        return [text]
    fixed = [name for name in text.columns if name not in names]
    return [text[[*fixed, *part] if at == 0 else part] for at, part in enumerate(parts)]


def _block(text: pd.DataFrame, width: int) -> list[RenderableType]:
    """A table, below a line with the columns that never change."""
    from rich.table import Table
    from rich.text import Text

    rows, bold = _rows(text, width), bold_cells(text)
    layout = _layout(text, width) or Layout.too_wide(rows)
    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="bold")
    for name, size in zip(rows.columns, layout.widths, strict=True):
        side: Literal["left", "right"] = "right" if is_numeric(text[name]) else "left"
        table.add_column(Text(name), justify=side, width=size, overflow="fold")
    for at, row in layout.rows.iterrows():
        cells = ((cell, "bold" if (at, name) in bold else "") for name, cell in row.items())
        table.add_row(*(Text(cell, style) for cell, style in cells))
    line = _wrapped(constant_line(text, rows), width)
    return [*([Text(line)] if line else []), table]


def _rows(text: pd.DataFrame, width: int) -> pd.DataFrame:
    """The columns that the table has, without those that go above it."""
    rows, values = varying(text), {*text.attrs.get("values", ())}
    if values and len(text) == 1 and choose_layout(rows, width) is None:
        return rows[[n for n in rows.columns if n in values and rows[n].iloc[0] != DASH]]
    return rows


def _layout(text: pd.DataFrame, width: int) -> Layout | None:
    """How the rows of a table fit; None: they do not."""
    return choose_layout(_rows(text, width), width, labels=bool(text.attrs.get("optional")))


def _fits(text: pd.DataFrame, width: int, whole: bool = False) -> bool:
    """Whether a table fits; `whole`: with every number in one line."""
    layout = _layout(text, width)
    return layout is not None and (layout.whole_cells or not whole)


def _wrapped(line: str, width: int) -> str:
    """`Model a · n 2,000` in lines of that width that break no name from its value."""
    tied = " · ".join(re.sub(r" (?=\S+$)", "\xa0", item) for item in line.split(" · "))
    return "\n".join(textwrap.wrap(tied, width, break_on_hyphens=False)).replace("\xa0", " ")
