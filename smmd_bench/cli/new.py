"""`smmd-bench new`: a working plugin to start from, with its test."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

if TYPE_CHECKING:
    from ..plugin_system.templates.write import Written


@click.command()
@click.argument("kind", type=click.Choice(["task", "loss", "report"]))
@click.argument("name")
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    default=None,
    help="Where the file goes (default: the project's package, else the current folder).",
)
@click.option("--project", default=None, help="Make a new project of this name around it.")
def command(
    kind: Literal["task", "loss", "report"], name: str, folder: Path | None, project: str | None
) -> None:
    """Write a task, loss or report called NAME that works as it is, and its test.

    In a folder with a pyproject.toml the entry point is added to it. Without one, and in
    smmd-bench's own, the file stands alone, for --plugin. No file that is there is ever
    overwritten.

    \b
    Examples:
      smmd-bench new task boiling_point
      smmd-bench new loss earth_mover --folder plugins
      smmd-bench new report by_length --project my-benchmark
    """
    from ..plugin_system.templates.write import into_current_project, into_new_project

    group: Literal["tasks", "losses", "reports"] = {  # type: ignore[assignment]
        "task": "tasks",
        "loss": "losses",
        "report": "reports",
    }[kind]
    if project is not None:
        written = into_new_project(group, name, project, folder)
    else:
        written = into_current_project(group, name, folder)
    for path in written.files:
        what = "Added the entry point to" if path == written.changed else "Wrote"
        click.echo(f"{what} {path}")
    if written.entry_point:
        click.echo(f"Add these lines to pyproject.toml:\n\n{written.entry_point}")
    _say_what_next(kind, name, project, folder, written)


_OFFLINE = "  (without a network: with --no-deps --no-build-isolation)"


def _say_what_next(
    kind: str, name: str, project: str | None, folder: Path | None, written: Written
) -> None:
    use = {
        "task": f"smmd-bench train-eval --task {name} --losses ce,smmd",
        "loss": f"smmd-bench train-eval --task arithmetic --losses ce,{name}",
        "report": "smmd-bench report runs/NAME",
    }[kind]
    click.echo(
        f"\nIt works as it is. Put yours in its place in {written.plugin} and its test, then:"
    )
    click.echo(f"  smmd-bench validate {_path(written.plugin)}")
    click.echo(f"  python -m pytest {_path(written.test)}")
    click.echo(f"  {use} --plugin {_path(written.plugin)}")
    if project is not None:
        root = (folder or Path()) / project
        click.echo(f"To use it by its name alone: pip install -e {_path(root)}{_OFFLINE}")
    elif written.changed or written.entry_point:
        click.echo(f"To use it by its name alone: pip install -e .{_OFFLINE}")


def _path(path: Path) -> str:
    import shlex

    text = path.as_posix()
    return shlex.quote(text if "/" in text or path.suffix == ".py" else f"./{text}")
