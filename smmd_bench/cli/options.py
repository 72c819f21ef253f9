"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

plugin: Decorator = click.option(
    "--plugin",
    "plugins",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A Python file with plugins of your own; may be repeated.",
)
executor: Decorator = click.option(
    "--executor", default="local", show_default=True, help="Where jobs run."
)
_OUTPUT: tuple[Decorator, ...] = (
    click.option(
        "--out",
        type=click.Path(path_type=Path),
        default=None,
        help="Output folder (default: runs/NAME, a name that follows from the experiment).",
    ),
    click.option("--extend", is_flag=True, help="Add this experiment to a folder of another one."),
    click.option(
        "--dry-run", is_flag=True, help="List the cells, which are done, and the time left."
    ),
)


def output(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--out`, `--extend` and `--dry-run`."""
    for option in reversed(_OUTPUT):
        function = option(function)
    return function
