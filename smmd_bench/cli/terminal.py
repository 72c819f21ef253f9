"""How commands print: in colour on a terminal, as plain lines elsewhere."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_NARROWEST, _ELSEWHERE = 80, 100


def new_console(*, stderr: bool = False) -> Console:
    """A console as wide as the terminal or `$COLUMNS`, or of 80 columns; NO_COLOR turns its
    colours off."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, markup=False, emoji=False)


def has_width(console: Console) -> bool:
    """Whether lines end somewhere: on a terminal, or where `$COLUMNS` says so."""
    return console.is_terminal or os.environ.get("COLUMNS", "").isdigit()


def result_width() -> int:
    """The columns that a table of results may take: those of the terminal or of `$COLUMNS`, 80 at
    least; 100 where there is neither."""
    console = new_console()
    return max(_NARROWEST, console.width) if has_width(console) else _ELSEWHERE


def print_sentence(text: str, *, stderr: bool = False) -> None:
    """Print a sentence, on a terminal broken between words; elsewhere it stays one line."""
    from rich.text import Text

    console = new_console(stderr=stderr)
    console.print(Text(text), soft_wrap=not console.is_terminal)


def new_table(**settings: Any) -> Table:
    """A table without lines, whose columns are two spaces apart."""
    from rich.table import Table

    return Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, **settings)


def print_table(console: Console, table: Table) -> None:
    """Print a table; where it is not for a terminal, without spaces at the ends of its lines."""
    if console.is_terminal:
        console.print(table)
        return
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        console.print(line.rstrip(), soft_wrap=True)


def plain(text: object) -> str:
    """Text that a model wrote, without the control characters that would move the cursor."""
    return "".join(c if c.isprintable() or c in "\n\t" else f"\\x{ord(c):02x}" for c in str(text))
