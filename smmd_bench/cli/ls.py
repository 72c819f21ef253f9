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
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Also print parameters, version, licence, sources and file.",
)
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

    listed: dict[str, list[Any]] = {
        name: listing(name, whole=verbose or as_json)
        for name in GROUPS
        if group in (None, name)
    }
    if group in (None, "models"):
        listed["models"] = listed_models()
    if as_json:
        print_json({name: [*map(asdict, items)] for name, items in listed.items()})
        return
    console = new_console()
    for name, items in listed.items():
        console.print(name, style="bold")
        for item in items:
            _print(console, asdict(item), verbose=verbose)
    if "models" in listed:
        console.print("  any other name on the hub, or a local checkpoint folder")


def _print(console: Console, item: dict[str, Any], *, verbose: bool) -> None:
    """Name and summary, cut where a terminal ends; below them, an error and all facts."""
    name = item.pop("name")
    summary = item.pop("summary")
    # Models have none.
    error = item.pop("error", None)
    # Programs such as grep read what is piped, where no line is cut.
    is_piped = not console.is_terminal
    cut: Any = "ignore" if is_piped else "ellipsis"
    line = f"  {name:<22}  {summary}"
    console.print(line, no_wrap=True, overflow=cut, soft_wrap=is_piped)
    if error is not None:
        line = f"    cannot be used: {error}"
        console.print(line, style="red", soft_wrap=is_piped)

    facts = item if verbose else {}
    for key, value in facts.items():
        if value not in (None, (), {}):
            line = f"    {_LABELS.get(key, key)}: {_spell(value)}"
            console.print(line, style="dim", soft_wrap=is_piped)


def _spell(value: Any) -> str:
    """A fact in one line; each parameter has its own."""
    if isinstance(value, tuple):
        return "".join(f"\n      {_spell(one)}" for one in value)
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {what}" for key, what in value.items())
    return str(value)
