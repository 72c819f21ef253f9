"""`smmd-bench sample`: look at a task's data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import click

from . import completion, options


@click.command()
@click.argument("task", shell_complete=completion.tasks)
@click.option(
    "-n", "count", default=5, show_default=True, type=click.IntRange(1), help="How many examples."
)
@click.option(
    "--split",
    default="train",
    show_default=True,
    type=click.Choice(["train", "validation", "test"]),
    help="Which split.",
)
@click.option("--seed", default=0, show_default=True, help="Of the data.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@options.data_dir
@options.plugin
def command(
    task: str,
    count: int,
    split: Literal["train", "validation", "test"],
    seed: int,
    as_json: bool,
    plugins: tuple[Path, ...],
) -> None:
    """Print examples of a TASK: prompt, target, and what the analysis knows of them.

    \b
    Examples:
      smmd-bench sample arithmetic -n 5
      smmd-bench sample 'arithmetic[operations=1..2]' --split test --json
      smmd-bench sample clock_time -n 3
    """
    from ..plugin_system.registry import load_plugin_file, load_task

    for file in plugins:
        load_plugin_file(file)
    for example in load_task(task).examples(split, seed, count):
        if as_json:
            line = {
                "uid": example.uid,
                "prompt": example.prompt,
                "target": example.target,
                **({"images": [str(path) for path in example.images]} if example.images else {}),
                **example.attributes,
            }
            click.echo(json.dumps(line, ensure_ascii=False))
            continue
        facts = ", ".join(f"{key} {value}" for key, value in example.attributes.items())
        click.secho(f"{example.uid}  {facts}", dim=True)
        for path in example.images:
            click.secho(str(path), dim=True)
        click.echo(f"{example.prompt}{click.style(example.target, bold=True)}\n")
