"""How commands print tables: in colour on a terminal, as plain lines elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def new_console() -> Console:
    """A console as wide as the terminal, or of 80 columns; NO_COLOR turns its colours off."""
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False)


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
