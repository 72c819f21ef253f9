"""`smmd-bench doctor`: what works here, what does not, and how to mend it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from . import options

if TYPE_CHECKING:
    from rich.console import Console

    from .examining.finding import Finding

_STYLES = {"ok": "green", "note": "yellow", "problem": "bold red"}


@click.command()
@click.option("--full", is_flag=True, help="Import all of vLLM, too: half a minute more.")
@options.as_json
@options.plugin
def command(full: bool, as_json: bool, plugins: tuple[Path, ...]) -> int:
    """Look at versions, GPU, memory, vLLM, torchvision, plugins, caches, disk and network.

    Each finding is "ok", "note" (it works, with a limit) or "problem" (something will fail), and
    the last two say what to do. The status is 1 if there is a problem. Nothing is changed.

    \b
    Examples:
      smmd-bench doctor
      smmd-bench doctor --json
      smmd-bench doctor --plugin my_task.py
    """
    import json

    from ..plugin_system.registry import load_plugin_file
    from .examining.examine import examine
    from .examining.libraries import versions
    from .terminal import new_console

    for file in plugins:
        load_plugin_file(file)
    console = new_console()
    if console.is_terminal and not as_json:
        with console.status("Looking around; vLLM takes some seconds to import ..."):
            findings = examine(full=full)
    else:
        findings = examine(full=full)
    problems = sum(finding.state == "problem" for finding in findings)
    if as_json:
        content = {"versions": versions(), "findings": [asdict(finding) for finding in findings]}
        click.echo(json.dumps({"problems": problems, **content}, indent=1))
        return 1 if problems else 0
    _print(console, findings)
    notes = sum(finding.state == "note" for finding in findings)
    said = f"{problems} problem{'s' * (problems != 1)}, {notes} note{'s' * (notes != 1)}"
    click.echo(f"{len(findings)} findings: {said}.")
    return 1 if problems else 0


def _print(console: Console, findings: list[Finding]) -> None:
    """State, name and text in columns, each remedy below its text."""
    from rich.text import Text

    from .terminal import new_table, print_table

    table = new_table(show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in findings:
        text = Text(finding.text)
        if finding.remedy is not None:
            text.append(f"\n-> {finding.remedy}", style="bold")
        state = Text(finding.state, style=_STYLES[finding.state])
        table.add_row(state, Text(finding.name), text)
    print_table(console, table)
