"""How commands print: in colour on a terminal, as plain lines elsewhere."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console, RenderableType
    from rich.table import Table


def new_console(*, stderr: bool = False) -> Console:
    """A console as wide as the terminal or `$COLUMNS`, else of 80 columns; NO_COLOR turns its
    colours off."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, markup=False, emoji=False)


def has_width(console: Console) -> bool:
    """Whether the output is a terminal, or `$COLUMNS` gives its width."""
    return console.is_terminal or os.environ.get("COLUMNS", "").isdigit()


def print_results(table: pd.DataFrame, title: str, caption: str = "") -> None:
    """Print a table of results as wide as the terminal or `$COLUMNS`, but at least 80; 100 where
    there is neither."""
    from ..publishing.terminal import to_terminal

    console = new_console()
    console.width = max(80, console.width) if has_width(console) else 100
    print_table(console, to_terminal(table, title, caption, console.width))


def print_sentence(text: str, *, stderr: bool = False) -> None:
    """Print a sentence: wrapped between words on a terminal, one line elsewhere."""
    console = new_console(stderr=stderr)
    console.print(text, soft_wrap=not console.is_terminal)


def print_json(content: Any) -> None:
    """Print an object for machines."""
    click.echo(json.dumps(content, indent=1, ensure_ascii=False))


def new_table(*columns: dict[str, Any]) -> Table:
    """A table without lines, whose columns are two spaces apart; each column by its settings."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=False)
    for column in columns:
        table.add_column(**column)
    return table


def print_table(console: Console, table: RenderableType) -> None:
    """Print a table; off a terminal, without spaces at the ends of its lines."""
    if console.is_terminal:
        console.print(table)
        return
    with console.capture() as captured:
        console.print(table)
    click.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))
