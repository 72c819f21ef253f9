"""`smmd-bench ls`: what is installed, with parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import yaml

from . import options


@click.command()
@click.argument("group", required=False)
@options.plugin
def command(group: str | None, plugins: tuple[Path, ...]) -> None:
    """List tasks, losses, engines, executors, reports and models, with their parameters.

    \b
    Examples:
      smmd-bench ls
      smmd-bench ls losses
      smmd-bench ls tasks --plugin my_task.py
    """
    from importlib.resources import files

    from ..card_content import backbones
    from ..errors import UserError, did_you_mean
    from ..parameters import parameters_of, spell
    from ..registry import GROUPS, entries, load_plugin_file

    known = [*GROUPS, "models"]
    if group is not None and group not in known:
        raise UserError(f"Unknown group '{group}': {did_you_mean(group, known)}")
    for file in plugins:
        load_plugin_file(file)
    for name in GROUPS:
        if group not in (None, name):
            continue
        click.secho(name, bold=True)
        for entry in entries(name):
            if entry.plugin is None:
                click.echo(f"  {entry.name}  cannot be used: {entry.error} (from {entry.origin})")
                continue
            click.echo(f"  {entry.name:<22} {_first_line(entry.plugin)}")
            for item in parameters_of(entry.plugin).values():
                click.echo(f"      {item.name}={spell(item.default)}  ({item.type}) {item.help}")
            if scales := getattr(entry.plugin, "relative_scale", None):
                shown = ", ".join(f"{scale:g} (N={n})" for n, scale in scales.items())
                of = getattr(entry.plugin, "relative_scale_of", None)
                shown += f"; {of}" if of else ""
                click.echo(f"      lambda * auxiliary : cross-entropy at a uniform guess: {shown}")
    if group in (None, "models"):
        click.secho("models", bold=True)
        for card in sorted(Path(str(files("smmd_bench") / "builtin")).glob("*/card.yaml")):
            content = yaml.safe_load(card.read_text(encoding="utf-8"))
            click.echo(f"  builtin/{card.parent.name:<27} {content['summary']}")
        for model, content in backbones().items():
            facts = (
                f"{content['label']}, {content['params']} parameters, N={content['numeric_tokens']}"
            )
            click.echo(f"  {model:<35} {facts}, {content['settings']['dtype']}")
            sizes = ", ".join(f"{gb} GB: {n}" for gb, n in content["micro_batch_sizes"].items())
            click.echo(f"      micro_batch_size on a GPU of {sizes}")
        click.echo("  any other name on the hub, or a local checkpoint folder")
        click.echo("  (micro_batch_size: estimates for GSM8K or Clock-Time, not run)")


def _first_line(plugin: Any) -> str:
    return (plugin.__doc__ or "").strip().partition("\n")[0]
