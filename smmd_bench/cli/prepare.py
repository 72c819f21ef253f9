"""`smmd-bench prepare`: fetch data and checkpoints ahead of a run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from ..errors import UserError
from . import completion, options
from .interruption import keeping
from .voice import Voice

if TYPE_CHECKING:
    from ..contracts import Split, Task

_UNKNOWN = "licence not stated"


@click.command()
@click.argument("tasks", nargs=-1, shell_complete=completion.tasks)
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="MODEL",
    shell_complete=completion.models,
    help="Also this checkpoint: hub name or local folder; may be repeated.",
)
@options.quiet
@options.data_dir
@options.plugin
def command(tasks: tuple[str, ...], models: tuple[str, ...], quiet: bool) -> None:
    """Fetch data and checkpoints ahead of a run.

    It fetches the data of TASKS, and of the tests of transfer that they name, unless they are here,
    and prints the size and licence of each file. It draws generated pictures, and opens those of a
    local copy once. Of a checkpoint it fetches safetensors, configuration and tokenizer, never
    pickles.

    \b
    Examples:
      smmd-bench prepare gsm8k --model Qwen/Qwen2.5-1.5B    # needs the hub
      smmd-bench prepare clock_time
      smmd-bench prepare gsm8k --data-dir ./data    # check a local copy
    """
    if quiet:
        os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"  # before anything imports its client
    from ..contracts import Modality
    from ..plugin_system.registry import load_task
    from ..storage.data_files import require_folder_read

    if not tasks and not models:
        raise UserError("Nothing to prepare: name a task, such as gsm8k, or a --model.")
    voice = Voice(quiet)
    found = {}
    for spec in tasks:
        task = load_task(spec)
        found[task.name] = task
        found |= {name: load_task(name) for name in getattr(task, "transfers", ())}
    options.require_used([f"task {task.name}" for task in found.values()])
    with keeping():
        for name, task in found.items():
            if not getattr(task, "sources", ()) and task.modality is Modality.TEXT:
                voice.say(f"{name}: nothing to fetch, because its examples are generated.")
                continue
            licence = getattr(task, "licence", _UNKNOWN)
            for what, size, place in _prepare_splits(task):
                _say(voice, f"{name} {what}, {size / 2**20:.1f} MiB, {licence}", place)
        require_folder_read()
        for model in models:
            _prepare_model(voice, model)


def _prepare_splits(task: Task) -> Iterator[tuple[str, int, Path | str | None]]:
    """Fetch or check the rows, or draw or check the pictures; what, bytes and place by split."""
    from ..contracts import Split
    from ..storage.data_files import parts_of

    sources = getattr(task, "sources", ())
    for source in sources:
        for split in source.local:
            file = source.file(split)
            rows = sum(1 for _ in source.rows(split))
            _check_pictures(task, split)
            yield (
                f"{split}: {rows:,} rows",
                sum(part.stat().st_size for part in parts_of(file)),
                file,
            )
    for split in get_args(Split) if not sources else ():
        paths = _check_pictures(task, split)
        size = sum(path.stat().st_size for path in paths)
        folder = os.path.commonpath(paths) if paths else None
        yield f"{split}: {len(paths):,} pictures", size, folder


def _check_pictures(task: Task, split: Split) -> set[Path]:
    """The pictures of a split, all of which open; raises UserError if one does not, or if the rows
    cannot be read as a task."""
    from ..encoding.images import check_images

    paths = {path for example in task.examples(split, 0, None) for path in example.images}
    check_images(sorted(paths))
    return paths


def _prepare_model(voice: Voice, name: str) -> None:
    """Fetch or check a checkpoint: count its weights, and read each file once."""
    from ..models.cards import licence_of, model_card
    from ..storage.sizes import spell_bytes

    card = model_card(name)
    files = sorted(card.folder.glob("*.safetensors"))
    size = spell_bytes(sum(file.stat().st_size for file in files))
    count = f"{len(files)} safetensors file{'s' * (len(files) != 1)}"
    licence = licence_of(card) or _UNKNOWN
    weights = f"{card.parameter_count():,} weights in {count}"
    _say(voice, f"{name}: {weights}, {size}, {licence}", card.folder)


def _say(voice: Voice, sentence: str, place: Path | str | None) -> None:
    voice.say(sentence)
    if place is not None:
        voice.always(f"{'' if voice.quiet else '  '}{place}")
