"""Write docs/cli.md, the help of every command: python -m scripts.write_cli [--check]

With --check, nothing is written, and the exit status is 1 if the page is not that of the commands.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from smmd_bench.cli import cli

PAGE = Path(__file__).parent.parent / "docs" / "cli.md"
HEAD = """\
# Commands

This page is what `smmd-bench COMMAND --help` prints. `python -m scripts.write_cli` writes it.
"""


def make_page() -> str:
    """The page: a section a command, with its help as 100 columns show it."""
    sections = [HEAD, _describe(cli, "smmd-bench", None)]
    group = click.Context(cli, info_name="smmd-bench", **cli.context_settings)
    for name in cli.list_commands(group):
        command = cli.get_command(group, name)
        assert command is not None
        sections.append(f"## {name}\n")
        sections.append(_describe(command, name, group))
    return "\n".join(sections)


def _describe(command: click.Command, name: str, parent: click.Context | None) -> str:
    settings = {**cli.context_settings, "terminal_width": 100}
    context = click.Context(command, info_name=name, parent=parent, **settings)
    return f"```text\n{command.get_help(context)}\n```\n"


if __name__ == "__main__":
    page = make_page()
    if "--check" not in sys.argv:
        PAGE.write_text(page, encoding="utf-8")
    elif page != PAGE.read_text(encoding="utf-8"):
        sys.exit(
            "docs/cli.md is not what the commands print: run python -m scripts.write_cli"
        )
