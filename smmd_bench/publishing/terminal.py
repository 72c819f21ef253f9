"""A table for a terminal: the columns that fit its width; a file of the table has all of them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

import pandas as pd
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from .style import spaced
from .tables import (
    SPANNING,
    as_text,
    bold_cells,
    find_first_rows,
    is_numeric,
    mark_bold,
    measure_width,
    split_constant,
)

_LEAST = 12
"""Letters to which a column of text may shrink; columns of numbers keep their width."""


def to_terminal(
    frame: pd.DataFrame,
    title: str,
    caption: str = "",
    width: int = 100,
    place: str = "",
) -> RenderableType:
    """Draw the table, its title and caption.

    Columns that never change go in a line above the table. Of the others, those that fit are shown,
    the first ones before the last, and those of `frame.attrs["optional"]` where no line breaks for
    them; a line below names the rest, and `place`, which has all columns.
    """
    # A star besides, since not every terminal shows bold, and a copied text never does.
    text = mark_bold(as_text(frame), lambda cell: re.sub(r"^\S+", r"\g<0>*", cell))
    columns, constant = split_constant(text)
    whole = frame.attrs.get("whole", ())
    least = {}
    for name in columns.columns:
        least[name] = _measure_least(columns[name], name in whole)
    fitting = _choose_columns(columns, least, frame.attrs.get("optional", ()), width)
    omitted = [name for name in columns.columns if name not in fitting]
    notes = [caption]
    if bold_cells(frame) and "bold_means" in frame.attrs:
        notes.append(f"*: {frame.attrs['bold_means']}.")
    if omitted:
        where = f" (see {place})" if place else ""
        notes.append(f"Not shown at this width: {', '.join(omitted)}{where}.")

    parts: list[RenderableType] = [Text(title, style="bold")]
    if constant:
        parts.append(Text(constant))
    parts.append(_draw_table(columns[fitting], least, whole, bold_cells(frame), width))
    below = " ".join(filter(None, notes))
    if below:
        parts.append(Text(below, style="dim"))
    return Group(*parts)


def _choose_columns(
    columns: pd.DataFrame,
    least: Mapping[str, int],
    optional: Sequence[str],
    width: int,
) -> list[str]:
    """Choose the columns that fit into a width, in their order; one at least."""
    unbroken = {name: measure_width(columns[[name]]) for name in least}

    # Texts may break into lines to make room, but never for the sake of an optional column.
    required = [name for name in least if name not in optional]
    fitting = _add_fitting([], required, least, width)
    # They are listed in the order in which they go.
    welcome = [name for name in reversed(optional) if name in least]
    fitting = _add_fitting(fitting, welcome, unbroken, width)
    return [name for name in least if name in fitting]


def _add_fitting(
    chosen: list[str], names: Sequence[str], letters: Mapping[str, int], width: int
) -> list[str]:
    """Add to the chosen columns those of `names` that fit beside them, two spaces apart."""
    for name in names:
        needed = sum(letters[other] + 2 for other in [*chosen, name])
        # The last column needs no space behind it.
        if not chosen or needed <= width + 2:
            chosen = [*chosen, name]
    return chosen


def _draw_table(
    columns: pd.DataFrame,
    least: Mapping[str, int],
    whole: Collection[str],
    bold: Collection[tuple[int, str]],
    width: int,
) -> Table:
    """Draw the columns; numbers and the texts of `whole` keep their least widths."""
    # Only a table that has to break its texts gets a width: rich would stretch another one to it.
    is_narrow = measure_width(columns) > width
    table = Table(
        box=None,
        pad_edge=False,
        padding=(0, 2, 0, 0),
        header_style="bold",
        width=width if is_narrow else None,
    )
    for name in columns.columns:
        if is_numeric(columns[name]):
            fixed = least[name] if is_narrow else None
            table.add_column(Text(name), justify="right", width=fixed)
        else:
            kept = least[name] if name in whole else None
            table.add_column(Text(name), overflow="fold", min_width=kept)

    if is_narrow:
        columns = _shorten_rows(columns)
    for place, row in columns.iterrows():
        cells = []
        for name in columns.columns:
            style = "bold" if (place, name) in bold else ""
            cells.append(Text(row[name], style))
        table.add_row(*cells)
    return table


def _shorten_rows(columns: pd.DataFrame) -> pd.DataFrame:
    """Let specs break at their commas, and leave out a task that is that of the row above."""
    shorter = columns.copy()
    # Other texts, such as completions, stay letter by letter.
    for name in (*SPANNING, "Loss"):
        if name in columns:
            shorter[name] = columns[name].map(spaced)
    for name, is_first in find_first_rows(columns).items():
        shorter[name] = shorter[name].where(is_first, "")
    return shorter


def _measure_least(column: pd.Series[str], is_whole: bool) -> int:
    """Count the letters that a column needs at least."""
    # A heading and a text may break between words, a number nowhere.
    cells = max(map(len, column), default=0)
    heading = max(map(len, str(column.name).split()), default=0)
    may_break = not (is_whole or is_numeric(column))
    return max(heading, min(cells, _LEAST) if may_break else cells)
