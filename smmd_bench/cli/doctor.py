"""`smmd-bench doctor`: what works here, what does not, and how to fix it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from . import options
from .terminal import new_console, new_table, print_json, print_table

if TYPE_CHECKING:
    from rich.console import Console

    from .doctor_checks import Finding

_STYLES = {"ok": "green", "note": "yellow", "problem": "bold red"}
_IMPORT_SECONDS, _FULL_SECONDS = 60.0, 240.0
_HUB_SECONDS = 2.0


@click.command()
@click.option("--full", is_flag=True, help="Import all of vLLM, too: half a minute more.")
@options.as_json
@options.plugin
def command(full: bool, as_json: bool) -> int:
    """Say what works here, what does not, and how to fix it.

    It looks at versions, GPU, memory, vLLM, torchvision, plugins, caches, disk and network, and
    changes nothing. A finding is "ok", "note" (it works, with a limit) or "problem" (something will
    fail); the last two say what to do. The status is 1 if there is a problem.

    \b
    Examples:
      smmd-bench doctor
      smmd-bench doctor --json
      smmd-bench doctor --plugin my_task.py
    """
    from .doctor_checks.libraries import versions

    console = new_console()
    quiet = as_json or not console.is_terminal
    text = "Looking around; vLLM takes some seconds to import ..."
    with nullcontext() if quiet else console.status(text):
        findings = examine(full=full)
    problems, notes = (sum(f.state == state for f in findings) for state in ("problem", "note"))
    if as_json:
        found = [asdict(finding) for finding in findings]
        print_json({"problems": problems, "versions": versions(), "findings": found})
    else:
        _print(console, findings)
        said = f"{problems} problem{'s' * (problems != 1)}, {notes} note{'s' * (notes != 1)}"
        click.echo(f"{len(findings)} findings: {said}.")
    return 1 if problems else 0


def examine(*, full: bool = False) -> list[Finding]:
    """Look at everything; `full` also imports all of vLLM."""
    from .doctor_checks import imports, libraries, machine
    from .doctor_checks.child_process import ask

    seconds = _FULL_SECONDS if full else _IMPORT_SECONDS
    with ThreadPoolExecutor() as pool:
        network = pool.submit(machine.network_finding, _HUB_SECONDS)
        storage = pool.submit(machine.storage_findings)
        torch = pool.submit(ask, imports.TORCH, seconds)
        vllm = pool.submit(ask, imports.VLLM_WHOLE if full else imports.VLLM, seconds)
        plugins = pool.submit(ask, imports.plugins_code(), seconds)
        return [
            *libraries.library_findings(),
            machine.memory_finding(),
            machine.cores_finding(),
            *imports.torch_findings(torch.result()),
            imports.vllm_finding(vllm.result(), full=full),
            *imports.plugin_findings(plugins.result()),
            *storage.result(),
            network.result(),
        ]


def _print(console: Console, findings: list[Finding]) -> None:
    """State, name and text in columns, each remedy below its text."""
    from rich.text import Text

    table = new_table({"no_wrap": True}, {"no_wrap": True}, {"overflow": "fold"})
    for finding in findings:
        text = Text(finding.text)
        if finding.remedy is not None:
            text.append(f"\n-> {finding.remedy}", style="bold")
        table.add_row(Text(finding.state, _STYLES[finding.state]), finding.name, text)
    print_table(console, table)
