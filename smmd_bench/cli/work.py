"""`smmd-bench work`: cells of a planned run, beside other processes."""

from dataclasses import asdict
from pathlib import Path

import click

from . import options
from .interruption import keeping
from .terminal import print_json
from .voice import Voice


@click.command()
@click.option(
    "--run", "folder", type=options.PATH, required=True, help="The folder that `plan` made."
)
@click.option(
    "--cell",
    "cells",
    metavar="ADDRESS",
    multiple=True,
    help="A cell, with its tests of transfer, trained again if it has lost its weights; may be "
    "repeated.  [default: (all)]",
)
@options.executor
@options.stall
@options.data_dir
@options.storage
@options.voice
def command(
    folder: Path, cells: tuple[str, ...], executor: str, storage: str | None, voice: Voice
) -> int:
    """Train, decode and measure cells of a planned run.

    Any number of processes may work on one folder, on any machines that share it, or that reach
    one --storage, each with a folder of its own then. A cell that another one works on is left to
    it; one whose process died is taken over, and goes on after its last state.

    \b
    Examples:
      smmd-bench work --run runs/shared
      smmd-bench work --run runs/shared --cell 36329443cd1b5d35
      smmd-bench work --run /tmp/here --storage s3://bucket/run
    """
    from ..run.pipeline import work_on

    with keeping():
        outcome = work_on(folder, cells, voice.progress, executor=executor, storage=storage)
    if not (outcome.worked or outcome.failed):
        voice.say(f"Nothing to do: what was asked for of {folder} is complete.")
    for label, holder in outcome.elsewhere.items():
        voice.say(f"Left to {holder}: {label}")
    for label, reason in outcome.skipped.items():
        voice.note(f"Skipped: {label}: {reason}")
    for label, reason in outcome.failed.items():
        voice.fail(f"Failed: {label}: {reason}")
    if voice.as_json:
        print_json({**asdict(outcome), "path": str(folder)})
    return 1 if outcome.failed else 0
