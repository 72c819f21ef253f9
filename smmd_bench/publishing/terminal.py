"""A table for a terminal: the columns that fit its width; a file of the table has all of them."""

from __future__ import annotations

import re

import pandas as pd
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from .tables import as_text, bold_cells, constant_line, is_numeric, mark_bold, varying, width_of

_LEAST = 14
"""Letters to which a column of text may shrink; columns of numbers keep their width."""


def to_terminal(
    frame: pd.DataFrame, title: str, caption: str = "", width: int = 100
) -> RenderableType:
    """The table, its title and caption.

    Columns that never change go in a line above the table. Of the others, those that fit are shown,
    the first ones before the last, and those of `frame.attrs["optional"]` where no line breaks for
    them; a line below names the rest.
    """
    whole = mark_bold(as_text(frame), lambda cell: re.sub(r"^\S+", r"\g<0>*", cell))
    rows, bold = varying(whole), bold_cells(frame)
    fixed, least = constant_line(whole, rows), {str(name): _least(rows[name]) for name in rows}
    optional = [name for name in reversed(frame.attrs.get("optional", ())) if name in least]
    whole_width = {name: width_of(rows[[name]]) for name in least}
    shown: list[str] = []
    for name in [*(name for name in least if name not in optional), *optional]:
        needs = whole_width if name in optional else least
        if not shown or sum(needs[other] + 2 for other in [*shown, name]) <= width + 2:
            shown.append(name)
    if left := [name for name in least if name not in shown]:
        caption = f"{caption} Not shown at this width: {', '.join(left)}.".lstrip()
    rows = rows[[name for name in least if name in shown]]
    narrow = width if width_of(rows) > width else None
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", width=narrow)
    for name in rows.columns:
        if is_numeric(rows[name]):
            table.add_column(Text(name), justify="right", width=least[name] if narrow else None)
        else:
            table.add_column(Text(name), overflow="fold")
    for at, row in rows.iterrows():
        cells = ((cell, "bold" if (at, name) in bold else "") for name, cell in row.items())
        table.add_row(*(Text(cell, style) for cell, style in cells))
    above = [Text(title, style="bold"), *([Text(fixed)] if fixed else [])]
    return Group(*above, table, *([Text(caption, style="dim")] if caption else []))


def _least(column: pd.Series[str]) -> int:
    """The letters that a column needs at least."""
    cells = max(map(len, column), default=0)
    heading = max(map(len, str(column.name).split()), default=0)
    return max(heading, cells if is_numeric(column) else min(cells, _LEAST))
