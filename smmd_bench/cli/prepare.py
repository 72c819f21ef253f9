"""`smmd-bench prepare`: fetch the data of tasks ahead of a run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from . import options

if TYPE_CHECKING:
    from ..contracts import Task


@click.command()
@click.argument("tasks", nargs=-1, required=True)
@options.data_dir
@options.plugin
def command(tasks: tuple[str, ...], plugins: tuple[Path, ...]) -> None:
    """Fetch the data of TASKS, and of the tests of transfer that they name, into the cache.

    What is there already is not fetched again. Each file is shown with its size and licence.
    Pictures that are made here are drawn; those of a local copy are all opened once.

    \b
    Examples:
      smmd-bench prepare gsm8k
      smmd-bench prepare clock_time
      smmd-bench prepare gsm8k --data-dir ./data    # check a local copy
    """
    from ..contracts import Modality
    from ..registry import load_plugin_file, load_task

    for file in plugins:
        load_plugin_file(file)
    found = {}
    for spec in tasks:
        task = load_task(spec)
        found[task.name] = task
        found |= {name: load_task(name) for name in getattr(task, "transfers", ())}
    for name, task in found.items():
        sources = getattr(task, "sources", ())
        if not sources and task.modality is Modality.VISION:
            _prepare_pictures(name, task)
        elif not sources:
            click.echo(f"{name}: nothing to fetch, its examples are made here.")
        for source in sources:
            for split in source.local:
                file = source.file(split)
                size = f"{file.stat().st_size / 2**20:.1f} MiB"
                rows = f"{len(source.rows(split)):,} rows"
                licence = getattr(task, "licence", "licence not stated")
                task.examples(split, 0, None)  # whether it can be read as a task, too
                click.echo(f"{name} {split}: {rows}, {size}, {licence}\n  {file}")


def _prepare_pictures(name: str, task: Task) -> None:
    """Make or check the pictures of every split, and say how many there are."""
    from typing import get_args

    from ..contracts import Split

    for split in get_args(Split):
        paths = {path for example in task.examples(split, 0, None) for path in example.images}
        size = sum(path.stat().st_size for path in paths) / 2**20
        licence = getattr(task, "licence", "licence not stated")
        click.echo(f"{name} {split}: {len(paths):,} pictures, {size:.1f} MiB, {licence}")
        if paths:
            click.echo(f"  {os.path.commonpath(paths)}")
