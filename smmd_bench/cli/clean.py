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
    "--what",
    word="PART",
    default="",
    show_default=False,
    help="Only these parts: leftovers, weights or cache; all: every one.",
)
@click.option("--yes", is_flag=True, help="Remove the parts that --what names.")
@options.as_json
def command(runs: tuple[Path, ...], what: list[str], yes: bool, as_json: bool) -> None:
    """List what can go of runs and the cache; with --yes, remove it.

    Without a RUN: of all in runs/, and the cache. All that reports read stays.

    \b
    Examples:
      smmd-bench clean runs/NAME --what leftovers,weights --yes
    """
    from ..maintenance.clean import PARTS, find_cache_parts, find_run_parts, remove
    from ..results.frames import read_run
    from ..run.run_directory import RunDirectory

    names = (*PARTS, "all")
    for name in what:
        if name not in names:
            raise UserError(f"Unknown part '{name}': {did_you_mean(name, names)}")
    if yes and not what:
        raise UserError(
            "--yes removes what --what names: name parts with --what, or all."
        )

    folders = sorted(file.parent for file in Path("runs").glob("*/manifest.json"))
    folders = [*dict.fromkeys(runs or folders)]
    # A lock keeps what a running command needs; the cache belongs to no run.
    removes_of_runs = yes and {*what} != {"cache"}
    with ExitStack() as locks:
        for folder in folders if removes_of_runs else ():
            # A lock would make the folder where there is none.
            read_run(folder)
            locks.enter_context(RunDirectory(folder).locked())
        parts = [part for folder in folders for part in find_run_parts(folder)]
        if not runs or "cache" in what:
            parts += find_cache_parts()
        if what and "all" not in what:
            parts = [part for part in parts if part.name in what]
        # The sizes are those from before the removal.
        listed = [part.to_dict() for part in parts]
        if not as_json:
            _print(parts)
        freed = remove(path for part in parts for path in part.paths) if yes else 0

    if as_json:
        print_json({"parts": listed, "removed_bytes": freed})
    elif yes:
        from rich.filesize import decimal

        click.echo(f"Removed {decimal(freed)}.")
    else:
        click.echo("Nothing was removed: --what PART,... --yes removes.")


def _print(parts: Sequence[Part]) -> None:
    from rich.filesize import decimal

    from ..maintenance.clean import COSTS, PARTS

    console = new_console()
    for place in dict.fromkeys(part.place for part in parts):
        console.print(str(place), style="bold", soft_wrap=True)
        for part in parts:
            if part.place != place:
                continue
            size = decimal(part.size)
            line = f"  {part.name:<9}  {size:>9}  {PARTS[part.name]}"
            cost = f"    -> {COSTS[part.name]}"
            console.print(line, soft_wrap=True)
            console.print(cost, style="dim", soft_wrap=True)

    size = decimal(sum(part.size for part in parts))
    click.echo(f"In all {size}.")
