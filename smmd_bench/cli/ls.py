"""`smmd-bench ls`: what is installed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import completion, options

if TYPE_CHECKING:
    from rich.console import Console

    from ..models.listing import ListedModel
    from ..plugin_system.listing import Listed

_LONGEST = 1000
_OTHERS = "any other name on the hub, or a local checkpoint folder"


@click.command()
@click.argument("group", required=False, shell_complete=completion.groups)
@click.option("-v", "--verbose", is_flag=True, help="Parameters, version, licence, sources, file.")
@options.as_json
@options.plugin
def command(group: str | None, verbose: bool, as_json: bool, plugins: tuple[Path, ...]) -> None:
    """List tasks, losses, engines, executors, reports and models, one a line.

    A plugin that cannot be used is listed with its error. GROUP shows one group only.

    \b
    Examples:
      smmd-bench ls
      smmd-bench ls losses -v
      smmd-bench ls tasks --plugin my_task.py
      smmd-bench ls --json
    """
    from ..errors import UserError, did_you_mean
    from ..models.listing import listed_models
    from ..plugin_system.listing import listing
    from ..plugin_system.registry import GROUPS, load_plugin_file
    from .terminal import new_console

    known = [*GROUPS, "models"]
    if group is not None and group not in known:
        raise UserError(f"Unknown group '{group}': {did_you_mean(group, known)}")
    for file in plugins:
        load_plugin_file(file)
    whole = verbose or as_json
    found = {name: listing(name, whole=whole) for name in GROUPS if group in (None, name)}
    models = listed_models() if group in (None, "models") else None
    if as_json:
        _print_json(found, models)
        return
    console = new_console()
    for name, items in found.items():
        click.secho(name, bold=True)
        if verbose:
            _print_all(console, items)
        else:
            _print_lines(console, ((item.name, item.summary, item.error) for item in items))
    if models is not None:
        click.secho("models", bold=True)
        if verbose:
            _print_models(console, models)
        else:
            _print_lines(console, ((model.name, model.summary, None) for model in models))
        click.echo(f"  {_OTHERS}")
    if not verbose:
        click.echo("-v: with parameters, versions, licences and sources.")


def _print_json(found: Mapping[Any, list[Listed]], models: list[ListedModel] | None) -> None:
    """One object: a list a group."""
    import json
    from dataclasses import asdict

    content = {name: [asdict(item) for item in items] for name, items in found.items()}
    if models is not None:
        content["models"] = [asdict(model) for model in models]
    click.echo(json.dumps(content, indent=1, ensure_ascii=False))


def _print_lines(console: Console, rows: Iterable[tuple[str, str, str | None]]) -> None:
    """Name and summary, cut where the terminal ends; an error stands there in full."""
    from rich.text import Text

    from .terminal import has_width, new_table, print_table

    if not has_width(console):  # a pipe: whole lines
        console.width = _LONGEST
    table = new_table(show_header=False)
    table.add_column(no_wrap=True, min_width=24)
    table.add_column(overflow="ellipsis", ratio=1)
    for name, summary, error in rows:
        text = Text(summary, no_wrap=True, overflow="ellipsis")
        if error is not None:
            text = Text(f"cannot be used: {error}", style="red", overflow="fold")
        table.add_row(Text(f"  {name}"), text)
    print_table(console, table)


def _print_all(console: Console, items: Iterable[Listed]) -> None:
    """Everything of each plugin, below its name."""
    from rich.text import Text

    from .terminal import new_table, print_table

    for item in items:
        version = "" if item.version is None else f"  version {item.version}"
        console.print(Text.assemble(("  " + item.name, "bold"), (version, "dim")))
        table = new_table(show_header=False)
        table.add_column(no_wrap=True, width=18)
        table.add_column(overflow="fold", ratio=1)
        if item.error is not None:
            table.add_row("      error", Text(f"cannot be used: {item.error}", style="red"))
        for label, text in _facts(item).items():
            table.add_row(Text(f"      {label}", style="dim"), Text(text))
        for at, parameter in enumerate(item.parameters):
            text = "{name}={default}  ({type}) {help}".format(**parameter)
            table.add_row(Text("" if at else "      parameters", style="dim"), Text(text))
        print_table(console, table)


def _facts(item: Listed) -> dict[str, str]:
    """What is said of a plugin besides its parameters."""
    origin = item.origin
    distribution = " ".join(origin[k] for k in ("distribution", "version") if k in origin)
    scales = ", ".join(f"{scale:g} (N={n})" for n, scale in item.scales.items())
    if scales and item.scales_of:
        scales += f"; {item.scales_of}"
    sources = (
        " ".join([s.get("hub", s.get("name", "")), s.get("revision", "")]) for s in item.sources
    )
    return {
        label: text
        for label, text in {
            "what": item.summary,
            "licence": item.licence,
            "sources": ", ".join(map(str.strip, sources)),
            "scale": scales and f"lambda * auxiliary : cross-entropy at a uniform guess: {scales}",
            "from": distribution,
            "file": origin.get("file", ""),
        }.items()
        if text
    }


def _print_models(console: Console, models: Iterable[ListedModel]) -> None:
    """Summaries, and the micro-batches that may fit on a GPU."""
    from rich.text import Text

    from .terminal import new_table, print_table

    table = new_table(show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold", ratio=1)
    for model in models:
        table.add_row(Text(f"  {model.name}", style="bold"), Text(model.summary))
        if model.micro_batch_sizes:
            sizes = (f"{gb} GB: {size}" for gb, size in model.micro_batch_sizes.items())
            table.add_row("", Text(f"micro_batch_size on a GPU of {', '.join(sizes)}"))
    print_table(console, table)
    click.echo("  micro_batch_size: estimates for GSM8K or Clock-Time, not run")
