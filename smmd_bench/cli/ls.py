"""`smmd-bench ls`: what is installed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from . import options
from .voice import new_console, print_json

if TYPE_CHECKING:
    from rich.console import Console

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
    console = new_console()
    for name, items in found.items():
        console.print(name, style="bold")
        for item in items:
            _print(console, asdict(item), verbose=verbose)
    if "models" in found:
        console.print("  any other name on the hub, or a local checkpoint folder")


def _print(console: Console, item: dict[str, Any], *, verbose: bool) -> None:
    """Name and summary, cut where a terminal ends; below them, an error and all facts."""
    name, summary, error = item.pop("name"), item.pop("summary"), item.pop("error", None)
    whole = not console.is_terminal
    cut: Any = "ignore" if whole else "ellipsis"
    console.print(f"  {name:<22}  {summary}", no_wrap=True, overflow=cut, soft_wrap=whole)
    if error is not None:
        console.print(f"    cannot be used: {error}", style="red", soft_wrap=whole)
    for label, value in item.items() if verbose else ():
        if value is not None and value != () and value != {}:
            line = f"    {_LABELS.get(label, label)}: {_spell(value)}"
            console.print(line, style="dim", soft_wrap=whole)


def _spell(value: Any) -> str:
    """A fact in one line; each parameter has its own."""
    if isinstance(value, tuple):
        return "".join(f"\n      {_spell(one)}" for one in value)
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {what}" for key, what in value.items())
    return str(value)
