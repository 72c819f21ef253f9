"""`smmd-bench new`: a working plugin to start from, with its test."""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import UserError, did_you_mean
from ..plugin_system.parameters import spell
from . import options

if TYPE_CHECKING:
    from ..plugin_system.registry import Group

_GROUPS: dict[str, Group] = {"task": "tasks", "loss": "losses", "report": "reports"}


@click.command()
@click.argument("kind", type=click.Choice(list(_GROUPS)))
@click.argument("name")
@click.option(
    "--folder", type=options.PATH, default=".", help="The folder to write to."
)
@click.option(
    "--from",
    "file",
    type=options.THERE,
    help="A file of data (CSV, JSONL or Parquet) that the new task reads.",
)
@click.option(
    "--question",
    help="With --from, its column of questions (default: one of a usual name).",
)
@click.option(
    "--answer",
    help="With --from, its column of answers (default: one of a usual name).",
)
@click.option(
    "--split", help="With --from, its column of splits (default: split, if it has one)."
)
def command(
    kind: str, name: str, folder: Path, file: Path | None, **columns: str | None
) -> None:
    """Write a task, loss or report of your own, with its test.

    It works as it is, a file for --plugin. With --from a task is that of `table`, as code.

    \b
    Examples:
      smmd-bench new task boiling_point --from boiling.csv
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    form = kind if file is None else "table"
    plugin = folder / f"{name}.py"
    files = {plugin: form, folder / f"test_{name}.py": f"test_{form}"}
    # Nothing is written before all is known to be right.
    _require_new(kind, name, files, file, columns)
    values: dict[str, Any] = {
        "plugin": plugin,
        "name": name,
        "title": name.replace("_", " ").capitalize(),
        "class_name": "".join(map(str.capitalize, name.split("_"))),
    }
    if file is not None:
        values |= _read_table(file, columns)

    loader = PackageLoader("smmd_bench.plugin_system", "templates")
    templates = Environment(
        loader=loader, undefined=StrictUndefined, keep_trailing_newline=True
    )
    folder.mkdir(parents=True, exist_ok=True)
    for path, template in files.items():
        text = templates.get_template(f"{template}.py.jinja").render(values)
        path.write_text(text, encoding="utf-8", newline="\n")
        click.echo(f"Wrote {path}")
    click.echo("\nIt works as it is. Replace what it does in both files, then:")
    click.echo("  smmd-bench validate {}\n  python -m pytest {}".format(*files))


def _require_new(
    kind: str,
    name: str,
    files: Iterable[Path],
    source: Path | None,
    columns: Mapping[str, str | None],
) -> None:
    """Raise UserError for a name that cannot be, files that are there, and options of no use."""
    from ..plugin_system.registry import names

    if source is not None and kind != "task":
        raise UserError(
            f"--from {source} is for a task, and {name} is a {kind}: leave it out."
        )
    named = [role for role, column in columns.items() if column is not None]
    if source is None and named:
        raise UserError(
            f"--{named[0]} names a column of a file: give the file with --from."
        )
    if name in names(_GROUPS[kind]):
        raise UserError(
            f"There is a {kind} '{name}' already: choose another, such as my_{name}."
        )
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise UserError(f"'{name}' is no name: take a-z, 0-9 and _, a letter first.")
    # Python that is started in the folder would import the file in place of the module.
    if name in sys.stdlib_module_names:
        raise UserError(f"{name} would hide the module {name}: choose another name.")
    existing = [path for path in files if path.exists()]
    if existing:
        raise UserError(
            f"{existing[0]} exists already and stays as it is: choose another name."
        )


def _read_table(file: Path, asked: Mapping[str, str | None]) -> dict[str, Any]:
    """The columns of a file, and what its answers are. Raises UserError as the task `table` does,
    and where a column is not named and has no usual name."""
    from ..plugin_system.registry import load_task
    from ..scoring.predictions import COLUMNS
    from ..scoring.score import reads_numbers
    from ..storage.text_rows import read_named_rows

    rows = read_named_rows(file)
    by_role = {
        "question": COLUMNS["prompt"],
        "answer": COLUMNS["target"],
        "split": ("split",),
    }
    # The usual names are those that `score` looks for in files, too.
    columns: dict[str, str] = {}
    for role, usual_names in by_role.items():
        column = _find_column(file, [*rows[0]], role, asked[role], usual_names)
        if column is not None:
            columns[role] = column

    parameters = {"path": str(file), **columns}
    pairs = ",".join(f"{key}={spell(value)}" for key, value in parameters.items())
    # What is wrong with the file, the task says before anything is written.
    task: Any = load_task(f"table[{pairs}]")
    choice = ", ".join(f"the {role} is '{name}'" for role, name in columns.items())
    click.echo(f"Of the columns of {file}, {choice}.")

    # Without a split for validation the code draws one out of its training examples.
    split = columns.get("split")
    drawn = split is not None and all(
        str(row[split]).strip() != "validation" for row in rows
    )
    return {
        **columns,
        "split": split,
        "drawn": drawn,
        "numbers": reads_numbers(task),
        "select_by": task.select_by,
        "path": str(file.resolve()),
        "spec": f"table[{pairs}]",
    }


def _find_column(
    file: Path, names: Sequence[str], role: str, asked: str | None, usual: Sequence[str]
) -> str | None:
    """The column that is named, or the only one with a usual name, in capitals or not. A file may
    have no split. Raises UserError for none, and for several."""
    if asked is not None:
        if asked.strip() not in names:
            raise UserError(
                f"{file} has no column '{asked}': {did_you_mean(asked, names)}"
            )
        return asked.strip()
    columns = [name for name in names if name.casefold().replace(" ", "_") in usual]
    if role == "split" and not columns:
        return None
    if len(columns) != 1:
        several = " and ".join(columns) or "no column with a usual name"
        raise UserError(
            f"{file} has {several} for the {role}, of {', '.join(names)[:200]}: name it with "
            f"--{role}."
        )
    return columns[0]
