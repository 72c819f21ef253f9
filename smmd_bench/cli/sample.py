"""`smmd-bench sample`: look at a task's data."""

import json
from typing import Literal

import click

from . import completion, options


@click.command()
@click.argument("task", shell_complete=completion.tasks)
@click.option("-n", "count", default=5, type=click.IntRange(1), help="How many examples.")
@options.choice("--split", "train", "validation", "test", help="Which split.")
@click.option("--seed", default=0, type=click.IntRange(0, 2**32 - 1), help="Of the data.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
@options.data_dir
@options.plugin
def command(
    task: str, count: int, split: Literal["train", "validation", "test"], seed: int, as_json: bool
) -> None:
    """Print examples of a TASK.

    Each has its prompt, its target, and the attributes that the analysis uses.

    \b
    Examples:
      smmd-bench sample arithmetic -n 5
      smmd-bench sample 'arithmetic[operations=1..2]' --split test --json
      smmd-bench sample clock_time -n 3
    """
    from ..plugin_system.checked_task import require_seed, take_examples
    from ..plugin_system.registry import load_task
    from ..storage.data_files import require_folder_read

    plugin = load_task(task)
    options.require_used([f"task {plugin.name}"])
    require_seed([(plugin, [split])], seed, "--seed")
    examples = take_examples(plugin, split, seed, count)
    require_folder_read()
    for example in examples:
        images = [str(path) for path in example.images]
        if as_json:
            line = {
                "uid": example.uid,
                "prompt": example.prompt,
                "target": example.target,
                **({"images": images} if images else {}),
                **example.attributes,
            }
            click.echo(json.dumps(line, ensure_ascii=False))
            continue
        facts = ", ".join(f"{key} {value}" for key, value in example.attributes.items())
        click.secho("\n".join([f"{example.uid}  {facts}", *images]), dim=True)
        click.echo(f"{example.prompt}{click.style(example.target, bold=True)}\n")
