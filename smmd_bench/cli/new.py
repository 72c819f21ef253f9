"""`smmd-bench new`: a working plugin to start from, with its test."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .options import PATH

if TYPE_CHECKING:
    from ..plugin_system.registry import Group

_GROUPS: dict[str, Group] = {"task": "tasks", "loss": "losses", "report": "reports"}
_USES = {
    "task": "smmd-bench train-eval --task {} --losses ce,smmd",
    "loss": "smmd-bench train-eval --task arithmetic --losses ce,{}",
    "report": "smmd-bench report runs/NAME",
}


@click.command()
@click.argument("kind", type=click.Choice(list(_GROUPS)))
@click.argument("name")
@click.option(
    "--folder",
    type=PATH,
    help="Where the file goes (default: the project's package, else the current folder).",
)
@click.option("--project", help="Make a new project of this name around it.")
def command(kind: str, name: str, folder: Path | None, project: str | None) -> None:
    """Write a task, loss or report of your own, with its test.

    The plugin NAME works as it is. In a folder with a pyproject.toml it adds the entry point.
    Without one, and in smmd-bench's own, the file stands alone, for --plugin. It never overwrites a
    file.

    \b
    Examples:
      smmd-bench new task boiling_point
      smmd-bench new loss earth_mover --folder plugins
      smmd-bench new report by_length --project my-benchmark
    """
    from ..plugin_system.templates.write import into_current_project, into_new_project

    group = _GROUPS[kind]
    if project is not None:
        written = into_new_project(group, name, project, folder)
    else:
        written = into_current_project(group, name, folder)
    for path in written.files:
        what = "Added the entry point to" if path == written.changed else "Wrote"
        click.echo(f"{what} {path}")
    if written.entry_point:
        click.echo(f"Add these lines to pyproject.toml:\n\n{written.entry_point}")
    plugin = _quote(written.plugin)
    click.echo(f"\nIt works as it is. Replace what it does in {plugin} and in its test, then:")
    click.echo(f"  smmd-bench validate {plugin}")
    click.echo(f"  python -m pytest {_quote(written.test)}")
    click.echo(f"  {_USES[kind].format(name)} --plugin {plugin}")
    if project is not None or written.changed or written.entry_point:
        root = "." if project is None else _quote((folder or Path()) / project)
        click.echo(
            f"To use it by its name alone: pip install -e {root}  (without a network: with "
            "--no-deps --no-build-isolation)"
        )


def _quote(path: Path) -> str:
    text = path.as_posix()
    return shlex.quote(text if "/" in text or path.suffix == ".py" else f"./{text}")
