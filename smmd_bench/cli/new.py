"""`smmd-bench new`: a working plugin to start from, with its test."""

from __future__ import annotations

import keyword
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import UserError
from ..plugin_system.parameters import spell
from . import options

if TYPE_CHECKING:
    from ..plugin_system.registry import Group

_GROUPS: dict[str, Group] = {"task": "tasks", "loss": "losses", "report": "reports"}


@click.command()
@click.argument("kind", type=click.Choice(list(_GROUPS)))
@click.argument("name")
@click.option("--folder", type=options.PATH, default=".", help="Where it goes.")
@click.option("--from", "file", type=options.THERE, help="CSV, JSONL or Parquet of a task.")
def command(kind: str, name: str, folder: Path, file: Path | None) -> None:
    """Write a task, loss or report of your own, with its test.

    It works as it is, a file for --plugin. With --from a task is that of `table`, as code.

    \b
    Examples:
      smmd-bench new task boiling_point --from boiling.csv
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    from ..plugin_system.registry import names

    if file is not None and kind != "task":
        raise UserError(f"--from {file} is for a task, and {name} is a {kind}: leave it out.")
    if name in names(_GROUPS[kind]):
        raise UserError(f"There is a {kind} '{name}' already: choose another, such as my_{name}.")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise UserError(f"'{name}' is no name: take a-z, 0-9 and _, a letter first.")
    if name in sys.stdlib_module_names:
        raise UserError(f"{name} would hide the module {name}: choose another name.")
    form = kind if file is None else "table"
    files = {folder / f"{name}.py": form, folder / f"test_{name}.py": f"test_{form}"}
    for path in (path for path in files if path.exists()):
        raise UserError(f"{path} exists already and stays as it is: choose another name.")
    loader = PackageLoader("smmd_bench.plugin_system", "templates")
    templates = Environment(loader=loader, undefined=StrictUndefined, keep_trailing_newline=True)
    values = {
        "plugin": folder / f"{name}.py",
        "name": name,
        "title": name.replace("_", " ").capitalize(),
        "class_name": "".join(map(str.capitalize, name.split("_"))),
        **({} if file is None else _read_table(file)),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for path, template in files.items():
        text = templates.get_template(f"{template}.py.jinja").render(values)
        path.write_text(text, encoding="utf-8", newline="\n")
        click.echo(f"Wrote {path}")
    click.echo("\nIt works as it is. Replace what it does in both files, then:")
    click.echo("  smmd-bench validate {}\n  python -m pytest {}".format(*files))


def _read_table(file: Path) -> dict[str, Any]:
    """The columns of a file by their usual names, or its first and last, and what answers are.
    Raises UserError as the task `table` does."""
    from ..plugin_system.registry import load_task
    from ..scoring.predictions import COLUMNS
    from ..scoring.score import reads_numbers
    from ..storage.data_files import read_rows

    names = [*read_rows(file)[0]]
    questions, answers = (
        [name for name in names if name.casefold() in COLUMNS[role]]
        for role in ("prompt", "target")
    )
    columns = {"question": (questions or names)[0], "answer": (answers or names[::-1])[0]}
    given = {"path": str(file), **columns}
    spec = f"table[{','.join(f'{key}={spell(value)}' for key, value in given.items())}]"
    numbers = reads_numbers(load_task(spec))
    kind = Path(file.name.removesuffix(".gz")).suffix  # pandas unpacks .gz by its name
    path = str(file.resolve())
    return {**columns, "path": path, "kind": kind, "spec": spec, "numbers": numbers}
