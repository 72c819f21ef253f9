"""Write docs/cli.md from the commands themselves; `--check` fails if it is out of date."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from smmd_bench.cli import cli

TARGET = Path(__file__).parent.parent / "docs" / "cli.md"


def render() -> str:
    lines = ["# Commands", "", "Made by `make docs` from the commands themselves.", ""]
    context = click.Context(
        cli, info_name="smmd-bench", max_content_width=96, **cli.context_settings
    )
    lines += ["## smmd-bench", "", "```", cli.get_help(context), "```", ""]
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        own = click.Context(command, info_name=name, parent=context, max_content_width=96)
        lines += [f"## smmd-bench {name}", "", "```", command.get_help(own), "```", ""]
    return "\n".join(lines)


def main() -> None:
    text = render()
    if "--check" not in sys.argv:
        TARGET.write_text(text, encoding="utf-8")
    elif not TARGET.exists() or TARGET.read_text(encoding="utf-8") != text:
        sys.exit("docs/cli.md is out of date: run `make docs`.")


if __name__ == "__main__":
    main()
