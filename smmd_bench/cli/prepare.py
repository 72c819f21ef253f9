"""`smmd-bench prepare` and `smmd-bench sample`: fetch a task's data, and look at them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, get_args

import click

from ..contracts import Modality, Split, Task
from ..errors import UserError
from . import options
from .voice import Voice

_UNKNOWN = "licence not stated"


@click.command()
@click.argument("tasks", nargs=-1)
@click.option(
    "--model",
    "models",
    multiple=True,
    help="Also fetch this checkpoint, such as Qwen/Qwen2.5-0.5B; may be repeated.",
)
@options.quiet
@options.data_dir
@options.plugin
def command(tasks: tuple[str, ...], models: tuple[str, ...], *, quiet: bool) -> None:
    """Fetch data and checkpoints ahead of a run.

    Generated pictures are drawn, and those of a local copy opened. Pickles are never fetched.

    \b
    Examples:
      smmd-bench prepare gsm8k --model Qwen/Qwen2.5-1.5B    # needs the hub
    """
    if quiet:
        # The hub's client reads this once, when it is imported.
        os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
    from ..plugin_system.registry import load_task

    if not tasks and not models:
        raise UserError("Nothing to prepare: name a task, such as gsm8k, or a --model.")
    by_name = {}
    for spec in tasks:
        task = load_task(spec)
        # A run tests the weights on these, too.
        by_name[task.name] = task
        by_name |= {name: load_task(name) for name in getattr(task, "transfers", ())}
    voice = Voice(quiet)
    for summary, place in chain(
        *map(_prepare_task, by_name.values()), map(_prepare_model, models)
    ):
        voice.say(summary)
        if place is not None:
            voice.always(f"{'' if quiet else '  '}{place}")


@click.command()
@click.argument("task")
@click.option(
    "-n", "count", default=5, type=click.IntRange(1), help="How many examples to print."
)
@options.choice(
    "--split", "train", "validation", "test", help="The split that the examples are of."
)
@click.option(
    "--seed", default=0, type=options.SEED, help="The data seed of the examples."
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print one JSON object a line, for programs.",
)
@options.data_dir
@options.plugin
def sample(task: str, count: int, split: Split, seed: int, *, as_json: bool) -> None:
    """Print examples of a TASK.

    \b
    Examples:
      smmd-bench sample 'arithmetic[operations=1..2]' --split test --json
    """
    from ..plugin_system.checked_task import notes_of, require_seed, take_examples
    from ..plugin_system.registry import load_task

    plugin = load_task(task)
    require_seed([(plugin, [split])], seed, "--seed")
    examples = take_examples(plugin, split, seed, count)
    for note in notes_of(plugin):
        # Programs read the standard output.
        click.echo(f"Note: {note}", err=True)
    for example in examples:
        images = [str(path) for path in example.images]
        if as_json:
            line: dict[str, Any] = {
                "uid": example.uid,
                "prompt": example.prompt,
                "target": example.target,
            }
            if images:
                line["images"] = images
            line |= example.attributes
            click.echo(json.dumps(line, ensure_ascii=False))
            continue
        facts = [f"{key} {value}" for key, value in example.attributes.items()]
        heading = f"{example.uid}  {', '.join(facts)}"
        click.secho("\n".join([heading, *images]), dim=True)
        target = click.style(example.target, bold=True)
        click.echo(f"{example.prompt}{target}\n")


def _prepare_task(task: Task) -> Iterator[tuple[str, Path | None]]:
    """Fetch or check the rows, draw or check the pictures; a line a split, and its place."""
    from ..encoding.images import check_images
    from ..storage.data_files import parts_of

    sources = getattr(task, "sources", ())
    if not sources and task.modality is Modality.TEXT:
        yield f"{task.name}: nothing to fetch.", None
        return
    for split in get_args(Split):
        # A source may have no rows for a split, as a task that is only a test.
        places = [source.file(split) for source in sources if split in source.local]
        examples = list(task.examples(split, 0, None))
        pictures = sorted({path for example in examples for path in example.images})
        check_images(pictures)
        # Generated pictures have no file of rows beside them.
        files = [*chain(*map(parts_of, places))] or pictures
        if not files:
            continue

        summary = f"{task.name} {split}: {len(examples):,} examples, {_size(files)}"
        place = places[0] if places else Path(os.path.commonpath(files))
        yield f"{summary}, {getattr(task, 'licence', _UNKNOWN)}", place


def _prepare_model(name: str) -> tuple[str, Path]:
    """Fetch or check a checkpoint: count its weights, and read each file once."""
    from ..models.cards import licence_of, model_card

    card = model_card(name)
    files = sorted(card.folder.glob("*.safetensors"))
    weights = f"{card.parameter_count():,} weights in {len(files)} of safetensors, {_size(files)}"
    return f"{name}: {weights}, {licence_of(card) or _UNKNOWN}", card.folder


def _size(files: list[Path]) -> str:
    from rich.filesize import decimal

    return decimal(sum(file.stat().st_size for file in files))
