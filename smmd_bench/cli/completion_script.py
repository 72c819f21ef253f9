"""`smmd-bench completion`: what makes a shell complete commands, options and names."""

from __future__ import annotations

import click

from .completion import SHELLS, script


@click.command()
@click.argument("shell", type=click.Choice(list(SHELLS)))
def command(shell: str) -> None:
    """Print the completion script of a SHELL, with the line to add to its settings.

    \b
    Examples:
      smmd-bench completion bash
      smmd-bench completion fish
    """
    click.echo(script(shell), nl=False)
