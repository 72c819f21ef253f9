"""`smmd-bench clean`: what can go, how much it is, and what it costs to have it again."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import UserError, did_you_mean
from ..storage.sizes import spell_bytes
from . import options
from .terminal import new_console, new_table, print_json, print_table

if TYPE_CHECKING:
    from ..run.removal import Part


@click.command()
@click.argument("runs", nargs=-1, type=options.PATH, metavar="[RUN]...")
@options.commas(
    "--what",
    word="PART",
    default="",
    show_default=False,
    help="Only these parts, by the names that --dry-run shows; all: every one.",
)
@click.option("--yes", is_flag=True, help="Remove what --what names without asking.")
@click.option("--dry-run", is_flag=True, help="Only list.")
@click.option("--json", "as_json", is_flag=True, help="List for machines; with --yes, remove too.")
def command(
    runs: tuple[Path, ...], what: list[str], yes: bool, dry_run: bool, as_json: bool
) -> None:
    """List what can go of runs and the cache, and remove it.

    It asks part by part, for each RUN (default: all in runs/, and the cache). Completions, probes,
    scores, metrics and training logs of the current cells stay, so that reports can be made again
    from a run that has lost everything else.

    \b
    Examples:
      smmd-bench clean --dry-run
      smmd-bench clean runs/NAME
      smmd-bench clean runs/NAME --what logs,failed --yes
    """
    from ..run.removal import PARTS

    for name in what:
        if name not in (*PARTS, "all"):
            raise UserError(f"Unknown part '{name}': {did_you_mean(name, [*PARTS, 'all'])}")
    if yes and not what and not dry_run:
        raise UserError(
            "--yes removes without asking: name the parts with --what (--what all for every one; "
            "--dry-run lists them)."
        )
    if yes and dry_run:
        raise UserError("--dry-run removes nothing and --yes does not ask: give one of them.")
    parts = _find_parts(runs, what)
    if as_json:
        freed = _remove(parts) if yes and not dry_run else 0
        print_json({"parts": [part.to_dict() for part in parts], "removed_bytes": freed})
        return
    if not parts:
        click.echo("There is nothing to remove.")
        return
    _print(parts)
    chosen = [] if dry_run else parts if yes else _ask(parts)
    freed = _remove(chosen)
    click.echo(f"Removed {spell_bytes(freed)}." if chosen else "Nothing was removed.")


def _find_parts(runs: tuple[Path, ...], what: Sequence[str]) -> list[Part]:
    """The parts of these runs (none: of all in runs/), and of the cache if it is meant."""
    from ..run.removal import cache_parts, run_parts

    found = sorted(file.parent for file in Path("runs").glob("*/manifest.json"))
    parts: list[Part] = []
    for folder in dict.fromkeys(runs or found):
        try:
            parts += run_parts(folder)
        except UserError as error:
            if runs:
                raise
            click.echo(f"Left out: {error}", err=True)
    if not runs or any(name.startswith("cache-") for name in what):
        parts += cache_parts()
    return [part for part in parts if not what or "all" in what or part.name in what]


def _ask(parts: Sequence[Part]) -> list[Part]:
    """The parts that people say yes to; none if nobody answers."""
    chosen = []
    for part in parts:
        question = f"Remove {part.name} of {part.place} ({spell_bytes(part.size)})?"
        try:
            if click.confirm(question, default=False):
                chosen.append(part)
        except click.Abort:
            if sys.stdin.isatty():  # Ctrl-C
                raise
            click.echo("\nNobody answers: give --what PART,... --yes.")
            return []
    return chosen


def _remove(parts: Sequence[Part]) -> int:
    """Remove parts, each run locked for this process; returns how many bytes that frees.

    Looks the parts up again first, because a run may have gone on while people were asked. Raises
    UserError if another process works on one of the runs; nothing is removed then.
    """
    from ..run.removal import remove, run_parts
    from ..run.run_directory import RunDirectory

    runs = dict.fromkeys(part.run for part in parts if part.run is not None)
    with ExitStack() as locks:
        for run in runs:
            locks.enter_context(RunDirectory(run).locked())
        now = {(part.run, part.name): part for run in runs for part in run_parts(run)}
        current = [p if p.run is None else now.get((p.run, p.name)) for p in parts]
        return sum(remove(part.paths) for part in current if part is not None)


def _print(parts: Sequence[Part]) -> None:
    from rich.text import Text

    from ..run.removal import COSTS, PARTS

    console, word = new_console(), {"no_wrap": True}
    for place in dict.fromkeys(part.place for part in parts):
        console.print(str(place), style="bold", soft_wrap=True)
        table = new_table(word, {**word, "justify": "right"}, {"overflow": "fold", "ratio": 1})
        for part in parts:
            if part.place == place:
                text = Text.assemble(PARTS[part.name], "\n", (f"-> {COSTS[part.name]}", "dim"))
                table.add_row(f"  {part.name}", spell_bytes(part.size), text)
        print_table(console, table)
    click.echo(f"In all {spell_bytes(sum(part.size for part in parts))}.")
