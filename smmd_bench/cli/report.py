"""`smmd-bench report RUN`: tables, figures and page again, from what is on disk."""

from __future__ import annotations

from pathlib import Path

import click

from . import completion, options


@click.command()
@click.argument("run", type=click.Path(path_type=Path), shell_complete=completion.runs)
@options.quiet
@options.as_json
@options.plugin
def command(run: Path, quiet: bool, as_json: bool, plugins: tuple[Path, ...]) -> None:
    """Make the tables, figures and page of the folder RUN again; nothing is trained or decoded.

    \b
    Examples:
      smmd-bench report runs/arithmetic_tiny_ce_ntl_smmd_1a2b3c
      smmd-bench report runs/NAME --plugin my_figure.py
    """
    from ..publishing.run import publish_run
    from ..registry import load_plugin_file
    from .interruption import keeping
    from .voice import Voice, published

    for file in plugins:
        load_plugin_file(file)
    voice = Voice(quiet, as_json)
    with keeping(tuple), voice.waiting("Making tables, figures and the page ..."):
        written = publish_run(run)
    voice.tables(run)
    voice.say(f"{len(written)} files in {run / 'reports'}")
    voice.paths(run)
    if as_json:
        voice.result(published(run))
