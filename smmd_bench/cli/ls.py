"""`smmd-bench ls`: what is installed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from . import options
from .terminal import has_width, new_console, new_table, print_json, print_table

if TYPE_CHECKING:
    from rich.console import Console

    from ..models.card_content import ListedModel
    from ..plugin_system.listing import Listed

_LONGEST = 1000
_NAME = {"no_wrap": True, "min_width": 24}
_GROUPS = ("tasks", "losses", "engines", "executors", "reports", "models")


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
      smmd-bench ls
      smmd-bench ls losses -v
      smmd-bench ls tasks --plugin my_task.py
      smmd-bench ls --json
    """
    from ..models.card_content import listed_models
    from ..plugin_system.listing import listing
    from ..plugin_system.registry import GROUPS

    whole = verbose or as_json
    found: dict[str, list[Any]] = {
        name: listing(name, whole=whole) for name in GROUPS if group in (None, name)
    }
    if group in (None, "models"):
        found["models"] = listed_models()
    if as_json:
        print_json({name: [*map(asdict, items)] for name, items in found.items()})
        return
    console = new_console()
    for name, items in found.items():
        click.secho(name, bold=True)
        if not verbose:
            _print_lines(console, items)
        elif name == "models":
            _print_models(console, items)
        else:
            _print_all(console, items)
    if "models" in found:
        click.echo("  any other name on the hub, or a local checkpoint folder")
    if not verbose:
        click.echo("-v: with parameters, versions, licences and sources.")


def _print_lines(console: Console, items: Iterable[Listed | ListedModel]) -> None:
    """Name and summary, cut where the terminal ends; an error is not cut."""
    from rich.text import Text

    if not has_width(console):  # a pipe: whole lines
        console.width = _LONGEST
    table = new_table(_NAME, {"overflow": "ellipsis", "ratio": 1})
    for item in items:
        text = Text(item.summary, no_wrap=True, overflow="ellipsis")
        if (error := getattr(item, "error", None)) is not None:
            text = Text(f"cannot be used: {error}", style="red", overflow="fold")
        table.add_row(f"  {item.name}", text)
    print_table(console, table)


def _print_all(console: Console, items: Iterable[Listed]) -> None:
    """Everything about each plugin, below its name."""
    from rich.text import Text

    for item in items:
        version = "" if item.version is None else f"  version {item.version}"
        console.print(Text.assemble(("  " + item.name, "bold"), (version, "dim")))
        label_column = {"no_wrap": True, "width": 18, "style": "dim"}
        table = new_table(label_column, {"overflow": "fold", "ratio": 1})
        for label, text in _facts(item):
            table.add_row(f"      {label}", Text(text, "red" if label == "error" else ""))
        print_table(console, table)


def _facts(item: Listed) -> list[tuple[str, str]]:
    """What is known of a plugin, each with its label."""
    origin = item.origin
    distribution = " ".join(origin[k] for k in ("distribution", "version") if k in origin)
    scales = ", ".join(f"{scale:g} (N={n})" for n, scale in item.scales.items())
    if scales and item.scales_of:
        scales += f"; {item.scales_of}"
    sources = (f"{s.get('hub', s.get('name', ''))} {s.get('revision', '')}" for s in item.sources)
    facts = [
        ("error", item.error and f"cannot be used: {item.error}"),
        ("what", item.summary),
        ("licence", item.licence),
        ("sources", ", ".join(map(str.strip, sources))),
        ("scale", scales and f"lambda * auxiliary : cross-entropy at a uniform guess: {scales}"),
        ("from", distribution),
        ("file", origin.get("file", "")),
    ]
    parameters = ["{name}={default}  ({type}) {help}".format(**p) for p in item.parameters]
    facts += [("" if at else "parameters", text) for at, text in enumerate(parameters)]
    return [(label, text) for label, text in facts if text]


def _print_models(console: Console, models: Iterable[ListedModel]) -> None:
    """Summaries, and the micro-batches that may fit on a GPU."""
    table = new_table({"no_wrap": True, "style": "bold"}, {"overflow": "fold", "ratio": 1})
    for model in models:
        table.add_row(f"  {model.name}", model.summary)
        if model.micro_batch_sizes:
            sizes = (f"{gb} GB: {size}" for gb, size in model.micro_batch_sizes.items())
            table.add_row("", f"micro_batch_size on a GPU of {', '.join(sizes)}")
    print_table(console, table)
    click.echo("  micro_batch_size: estimates for GSM8K or Clock-Time, not run")
