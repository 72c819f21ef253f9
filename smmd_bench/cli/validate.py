"""`smmd-bench validate`: whether plugins do what their contracts say."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from . import completion, options

if TYPE_CHECKING:
    from rich.text import Text

    from ..conformance.checks import Finding

_SIGNS = {"passed": ("✓", "green"), "failed": ("✗", "bold red"), "unchecked": ("–", "yellow")}


@click.command()
@click.argument(
    "plugins_to_check",
    metavar="[NAME|GROUP|FILE.py]...",
    nargs=-1,
    shell_complete=completion.plugins_and_files,
)
@click.option(
    "--run",
    type=click.Path(path_type=Path),
    default=None,
    help="A run of yours that reports are tried on, beside generated ones.",
)
@options.as_json
@options.data_dir
@options.plugin
def command(
    plugins_to_check: tuple[str, ...], run: Path | None, as_json: bool, plugins: tuple[Path, ...]
) -> int:
    """Check plugins against their contracts; without arguments, all that are installed.

    A check is ✓ passed, ✗ failed, or – where it cannot be made here, with the reason: nothing is
    fetched, so `smmd-bench prepare` a task first, or give --data-dir. The exit status is 1 if any
    check failed.

    \b
    Examples:
      smmd-bench validate ce
      smmd-bench validate my_task.py
      smmd-bench validate 'smmd[sigma=1+2]' arithmetic
      smmd-bench validate reports --run runs/NAME
      smmd-bench validate
    """
    os.environ["HF_HUB_OFFLINE"] = "1"  # before anything imports the hub's client
    from tempfile import TemporaryDirectory

    from ..conformance.generated_runs import GeneratedRuns
    from ..conformance.suite import findings, targets
    from ..plugin_system.registry import load_plugin_file
    from ..results.frames import read_run
    from .terminal import new_console

    for file in plugins:
        load_plugin_file(file)
    wanted = targets(plugins_to_check)
    if run is not None:
        read_run(run)
    console = new_console()
    found = {}
    with TemporaryDirectory(prefix="smmd-bench-") as folder:
        runs = GeneratedRuns(Path(folder), run)
        for target in wanted:
            with new_console(stderr=True).status(f"Checking {target.label} ..."):
                found[target] = findings(target, runs)
            if not as_json:
                console.print(target.label, style="bold", soft_wrap=True)
                for finding in found[target]:
                    console.print(_line(finding, console.width), soft_wrap=True)
    states: list[str] = [finding.state for checks in found.values() for finding in checks]
    counts = {state: states.count(state) for state in _SIGNS}
    if as_json:
        content = [
            {
                "group": target.group,
                "plugin": target.spec,
                "checks": [
                    {"check": f.check, "state": f.state, "detail": f.detail} for f in checks
                ],
            }
            for target, checks in found.items()
        ]
        click.echo(json.dumps({"plugins": content, **counts}, indent=1, ensure_ascii=False))
    else:
        console.print(
            f"{len(found)} plugin{'s' * (len(found) != 1)}: {counts['passed']} checks passed, "
            f"{counts['failed']} failed, {counts['unchecked']} could not be made."
        )
    return 1 if counts["failed"] else 0


def _line(finding: Finding, width: int) -> Text:
    """A sign, the check and its detail, wrapped beside the sign."""
    import textwrap

    from rich.text import Text

    sign, style = _SIGNS[finding.state]
    detail = f"could not: {finding.detail}" if finding.state == "unchecked" else finding.detail
    lines = textwrap.wrap(f"{finding.check}: {detail}", max(20, width - 5))
    return Text.assemble("  ", (sign, style), " ", "\n    ".join(lines))
