"""`smmd-bench clean`: what can go, how much it is, and what it costs to have it again."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import UserError, did_you_mean
from . import options
from .voice import new_console, print_json

if TYPE_CHECKING:
    from ..maintenance.clean import Part


@click.command()
@click.argument("runs", nargs=-1, type=options.PATH, metavar="[RUN]...")
@options.commas(
    "--what", word="PART", default="", show_default=False, help="Only these parts; all: every one."
)
@click.option("--yes", is_flag=True, help="Remove the parts that --what names.")
@click.option("--dry-run", is_flag=True, help="Only list, as without --yes.")
@options.as_json
def command(
    runs: tuple[Path, ...], what: list[str], yes: bool, dry_run: bool, as_json: bool
) -> None:
    """List what can go of runs and the cache; with --yes, remove it.

    Without a RUN: of all in runs/, and the cache. All that reports read stays.

    \b
    Examples:
      smmd-bench clean runs/NAME --what logs,failed --yes
    """
    from ..maintenance.clean import PARTS, cache_parts, run_parts

    for name in what:
        if name not in (known := (*PARTS, "all")):
            raise UserError(f"Unknown part '{name}': {did_you_mean(name, known)}")
    if yes and dry_run:
        raise UserError("--yes removes, and --dry-run only lists: keep one of them.")
    if yes and not what:
        raise UserError("--yes removes what --what names: name parts with --what, or all.")
    there = sorted(file.parent for file in Path("runs").glob("*/manifest.json"))
    parts = [part for folder in dict.fromkeys(runs or there) for part in run_parts(folder)]
    if not runs or any(name.startswith("cache-") for name in what):
        parts += cache_parts()
    parts = [part for part in parts if not what or "all" in what or part.name in what]
    if not as_json:
        _print(parts)
    listed = [part.to_dict() for part in parts]  # with the sizes before removal
    freed = _remove(parts) if yes else 0
    if as_json:
        print_json({"parts": listed, "removed_bytes": freed})
    elif yes:
        from rich.filesize import decimal

        click.echo(f"Removed {decimal(freed)}.")
    else:
        click.echo("Nothing was removed: --what PART,... --yes removes.")


def _remove(parts: Sequence[Part]) -> int:
    """Remove parts and return the bytes that frees; raises UserError, and removes nothing, if
    another process works on one of the runs. What a run has come to need since stays."""
    from ..maintenance.clean import remove, run_parts
    from ..run.run_directory import RunDirectory

    runs = dict.fromkeys(part.run for part in parts if part.run is not None)
    with ExitStack() as locks:
        for run in runs:
            locks.enter_context(RunDirectory(run).locked())
        now = {(p.run, p.name, at) for run in runs for p in run_parts(run) for at in p.paths}
        listed = ((p.run, p.name, at) for p in parts for at in p.paths)
        return remove(one[2] for one in listed if one[0] is None or one in now)


def _print(parts: Sequence[Part]) -> None:
    from rich.filesize import decimal

    from ..maintenance.clean import COSTS, PARTS

    console = new_console()
    for place in dict.fromkeys(part.place for part in parts):
        console.print(str(place), style="bold", soft_wrap=True)
        for name, size in ((part.name, part.size) for part in parts if part.place == place):
            console.print(f"  {name:<15}  {decimal(size):>9}  {PARTS[name]}", soft_wrap=True)
            console.print(f"    -> {COSTS[name]}", style="dim", soft_wrap=True)
    click.echo(f"In all {decimal(sum(part.size for part in parts))}.")
