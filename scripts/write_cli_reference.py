"""Write docs/cli.md from the commands themselves; `--check` fails if it is out of date."""

from __future__ import annotations

import click
from _generated_file import write_or_check

from smmd_bench.cli import cli


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


if __name__ == "__main__":
    write_or_check("cli.md", render())
