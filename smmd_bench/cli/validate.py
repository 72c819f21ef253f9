"""`smmd-bench validate`: whether plugins do what their contracts say."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from ..errors import UserError
from . import options
from .voice import new_console, print_json

_SIGNS = {
    "passed": ("✓", "green"),
    "failed": ("✗", "red"),
    "unchecked": ("–", "yellow"),
}


def _go_offline(
    _: click.Context, __: click.Parameter, value: tuple[str, ...]
) -> tuple[str, ...]:
    # The hub's client, which a plugin file may import, reads this once.
    os.environ["HF_HUB_OFFLINE"] = "1"
    return value


@click.command()
@click.argument(
    "plugins_to_check",
    metavar="[NAME|GROUP|FILE.py]...",
    nargs=-1,
    is_eager=True,
    callback=_go_offline,
)
@click.option(
    "--run", type=options.PATH, help="Also try reports on this run of your own."
)
@options.as_json
@options.data_dir
@options.plugin
def command(plugins_to_check: tuple[str, ...], run: Path | None, as_json: bool) -> int:
    """Check plugins against their contracts.

    Without arguments it checks every installed plugin. A check is ✓ passed, ✗ failed, or – not
    possible here. Nothing is fetched. The exit status is 1 if a check failed.

    \b
    Examples:
      smmd-bench validate 'smmd[sigma=1+2]' arithmetic
    """
    from ..conformance.suite import findings, targets
    from ..plugin_system.registry import singular
    from ..results.frames import read_run

    wanted = targets(plugins_to_check)
    if run is not None:
        read_run(run)  # a folder that is no run is a mistake, and no finding
        if "reports" not in dict(wanted):
            raise UserError(
                "--run is for reports, and none is to be checked: leave it out."
            )
    results: list[dict[str, Any]] = []
    for group, spec in wanted:
        label = f"{singular(group)} {spec}"
        with new_console(stderr=True).status(f"Checking {label} ..."):
            checks = findings((group, spec), run)
        results.append(
            {"group": group, "plugin": spec, "checks": [asdict(one) for one in checks]}
        )
        if not as_json:
            click.secho(label, bold=True)
            for one in checks:
                click.echo(
                    f"{click.style(*_SIGNS[one.state])} {one.check}: {one.detail}"
                )
    # A state that no check has is shown, too.
    states = [check["state"] for plugin in results for check in plugin["checks"]]
    counts = {state: states.count(state) for state in _SIGNS}
    if as_json:
        print_json({"plugins": results, **counts})
    else:
        click.echo(", ".join(f"{count} {state}" for state, count in counts.items()))
    return 1 if counts["failed"] else 0
