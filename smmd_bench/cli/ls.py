"""`smmd-bench ls`: what is installed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import click

from . import options
from .terminal import has_width, new_console, new_table, print_json, print_table

_GROUPS = ("tasks", "losses", "engines", "executors", "reports", "models")
_LABELS = {
    "scales": "lambda * auxiliary : cross-entropy at a uniform guess, by N",
    "scales_of": "of",
    "micro_batch_sizes": "micro_batch_size that may fit, by GB of the GPU",
}


@click.command()
@click.argument("group", required=False, type=click.Choice(_GROUPS), metavar="[GROUP]")
@click.option("-v", "--verbose", is_flag=True, help="Parameters, version, licence, sources, file.")
@options.as_json
@options.plugin
def command(group: str | None, verbose: bool, as_json: bool) -> None:
    """List tasks, losses, engines, executors, reports, models.

    A plugin that cannot be used is listed with its error. GROUP lists one group only.

    \b
    Examples:
      smmd-bench ls losses -v
    """
    from ..models.card_content import listed_models
    from ..plugin_system.listing import listing
    from ..plugin_system.registry import GROUPS

    found: dict[str, list[Any]] = {
        name: listing(name, whole=verbose or as_json) for name in GROUPS if group in (None, name)
    }
    if group in (None, "models"):
        found["models"] = listed_models()
    if as_json:
        print_json({name: [*map(asdict, items)] for name, items in found.items()})
        return
    for name, items in found.items():
        click.secho(name, bold=True)
        _print(map(asdict, items), verbose=verbose)
    if "models" in found:
        click.echo("  any other name on the hub, or a local checkpoint folder")


def _print(items: Iterator[dict[str, Any]], *, verbose: bool) -> None:
    """Name and summary, cut where the terminal ends; below them, an error and all facts."""
    from rich.text import Text

    console = new_console()
    if not has_width(console):  # a pipe: whole lines
        console.width = 1000
    table = new_table({"no_wrap": True, "min_width": 24}, {"overflow": "fold", "ratio": 1})
    for item in items:
        name, summary, error = item.pop("name"), item.pop("summary"), item.pop("error", None)
        table.add_row(f"  {name}", Text(summary, no_wrap=True, overflow="ellipsis"))
        if error is not None:
            table.add_row("", Text(f"cannot be used: {error}", "red"))
        for label, value in item.items() if verbose else ():
            if value is not None and value != () and value != {}:
                table.add_row("", Text(f"{_LABELS.get(label, label)}: {_spell(value)}", "dim"))
    print_table(console, table)


def _spell(value: Any) -> str:
    """A fact in one line; each parameter has its own."""
    if isinstance(value, tuple):
        return "".join(f"\n  {_spell(one)}" for one in value)
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {what}" for key, what in value.items())
    return str(value)
