"""`smmd-bench report RUN`: tables, figures and page again, from what is on disk."""

from __future__ import annotations

from pathlib import Path

import click

from . import options


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@options.plugin
def command(run: Path, plugins: tuple[Path, ...]) -> None:
    """Make the tables, figures and page of the folder RUN again; nothing is trained or decoded.

    \b
    Examples:
      smmd-bench report runs/arithmetic_tiny_ce_ntl_smmd_1a2b3c
      smmd-bench report runs/NAME --plugin my_figure.py
    """
    from ..publishing.run import publish_run
    from ..registry import load_plugin_file
    from .execution import print_tables

    for file in plugins:
        load_plugin_file(file)
    written = publish_run(run)
    print_tables(run)
    click.echo(f"{len(written)} files in {run / 'reports'}")
    click.echo(f"Page: {run / 'reports' / 'index.html'}")
