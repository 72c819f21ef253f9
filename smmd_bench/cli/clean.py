"""`smmd-bench clean`: what can go, how much it is, and what it costs to have it again."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from . import completion

if TYPE_CHECKING:
    from ..run.removal import Part

_NOTHING = "Nothing was removed."


@click.command()
@click.argument(
    "runs",
    nargs=-1,
    type=click.Path(path_type=Path),
    metavar="[RUN]...",
    shell_complete=completion.runs,
)
@click.option(
    "--what",
    "what",
    default="",
    metavar="PART,...",
    help="Only these parts, by the names that --dry-run shows; all: every one.",
)
@click.option("--yes", is_flag=True, help="Remove what --what names without asking.")
@click.option("--dry-run", is_flag=True, help="Only list.")
@click.option("--json", "as_json", is_flag=True, help="List for machines; with --yes, remove too.")
def command(runs: tuple[Path, ...], what: str, yes: bool, dry_run: bool, as_json: bool) -> None:
    """List what can go of each RUN (default: all in runs/, and the cache), and ask part by part.

    Completions, probes, scores, metrics and training logs of the cells that count are never
    touched: reports can be made again of a run that was cleaned of everything.

    \b
    Examples:
      smmd-bench clean --dry-run
      smmd-bench clean runs/NAME
      smmd-bench clean runs/NAME --what logs,failed --yes
    """
    from ..errors import UserError, did_you_mean
    from ..plugin_system.parameters import split_list
    from ..run.removal import PARTS, cache_parts
    from ..run.run_parts import run_parts

    wanted = split_list(what)
    for name in wanted:
        if name not in (*PARTS, "all"):
            raise UserError(f"Unknown part '{name}': {did_you_mean(name, [*PARTS, 'all'])}")
    if yes and not wanted and not dry_run:
        raise UserError(
            "--yes removes without asking: name the parts with --what (--what all for every one; "
            "--dry-run lists them)."
        )
    folders = list(dict.fromkeys(runs)) or sorted(
        f.parent for f in Path("runs").glob("*/manifest.json")
    )
    parts: list[Part] = []
    for folder in folders:
        try:
            parts += run_parts(folder)
        except UserError as error:
            if runs:
                raise
            click.echo(f"Left out: {error}", err=True)
    if not runs or any(name.startswith("cache-") for name in wanted):
        parts += cache_parts()
    if wanted and "all" not in wanted:
        parts = [part for part in parts if part.name in wanted]
    removing = not dry_run and (yes or not as_json)
    if as_json:
        freed = _remove(parts) if removing else 0
        _print_json(parts, freed)
        return
    if not parts:
        click.echo("There is nothing to remove.")
        return
    _print(parts)
    if not removing:
        click.echo(_NOTHING)
        return
    chosen = parts if yes else _ask(parts)
    freed = _remove(chosen)
    click.echo(f"Removed {_spell(freed)}." if chosen else _NOTHING)


def _ask(parts: Sequence[Part]) -> list[Part]:
    """The parts that people say yes to; where nobody answers, none."""
    chosen = []
    for part in parts:
        question = f"Remove {part.name} of {part.place} ({_spell(part.size)})?"
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
    """Remove parts, each run held for this process alone; returns the bytes that went.

    Raises UserError if another process works on one of the runs; nothing is removed then.
    """
    from contextlib import ExitStack

    from ..run.removal import remove
    from ..run.run_directory import RunDirectory

    with ExitStack() as held:
        for run in dict.fromkeys(part.run for part in parts if part.run is not None):
            held.enter_context(RunDirectory(run).locked())
        return sum(remove(part.paths) for part in _as_it_is_now(parts))


def _as_it_is_now(parts: Sequence[Part]) -> list[Part]:
    """The same parts, looked up again: a run may have gone on while people were asked."""
    from ..run.run_parts import run_parts

    now = {(p.run, p.name): p for run in {p.run for p in parts} if run for p in run_parts(run)}
    return [now.get((p.run, p.name), p) for p in parts if p.run is None or (p.run, p.name) in now]


def _print(parts: Sequence[Part]) -> None:
    from rich.text import Text

    from ..run.removal import PARTS
    from .terminal import new_console, new_table, print_table

    console = new_console()
    for place in dict.fromkeys(part.place for part in parts):
        console.print(Text(str(place), style="bold"), soft_wrap=True)
        table = new_table(show_header=False)
        table.add_column(no_wrap=True)
        table.add_column(no_wrap=True, justify="right")
        table.add_column(overflow="fold", ratio=1)
        for part in parts:
            if part.place == place:
                text = Text(f"{PARTS[part.name]}\n")
                text.append(f"-> {part.cost}", style="dim")
                table.add_row(Text(f"  {part.name}"), Text(_spell(part.size)), text)
        print_table(console, table)
    click.echo(f"In all {_spell(sum(part.size for part in parts))}.")


def _print_json(parts: Sequence[Part], freed: int) -> None:
    import json

    content = {"parts": [part.to_dict() for part in parts], "removed_bytes": freed}
    click.echo(json.dumps(content, indent=1))


def _spell(count: int) -> str:
    from ..storage.sizes import spell_bytes

    return spell_bytes(count)
