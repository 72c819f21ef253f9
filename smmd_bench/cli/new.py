"""`smmd-bench new`: a working plugin to start from, with its test."""

from __future__ import annotations

import keyword
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import UserError
from . import options

if TYPE_CHECKING:
    from ..plugin_system.registry import Group

_GROUPS: dict[str, Group] = {"task": "tasks", "loss": "losses", "report": "reports"}


@click.command()
@click.argument("kind", type=click.Choice(list(_GROUPS)))
@click.argument("name")
@click.option("--folder", type=options.PATH, default=".", help="Where it goes.")
@click.option("--project", help="Make a new project of this name around it.")
def command(kind: str, name: str, folder: Path, project: str | None) -> None:
    """Write a task, loss or report of your own, with its test.

    It works as it is: a file for --plugin, or a project that pip installs.

    \b
    Examples:
      smmd-bench new report by_length --project my-benchmark
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    from ..plugin_system.registry import names

    if name in names(_GROUPS[kind]):
        raise UserError(f"There is a {kind} '{name}' already: choose another, such as my_{name}.")
    package = re.sub(r"[-.]", "_", project or name).lower()
    for module in (name, package):
        _require_free(module)
    root = folder if project is None else folder / project
    plugin = root / f"{name}.py" if project is None else root / package / f"{name}.py"
    test = root / ("." if project is None else "tests") / f"test_{name}.py"
    for path in (plugin, test) if project is None else (root,):
        if path.exists():
            raise UserError(f"{path} exists already and stays as it is: choose another name.")
    loader = PackageLoader("smmd_bench.plugin_system", "templates")
    templates = Environment(loader=loader, undefined=StrictUndefined, keep_trailing_newline=True)
    files = {plugin: f"{kind}.py", test: f"test_{kind}.py"}
    if project is not None:
        files[root / "pyproject.toml"] = "pyproject.toml"
    values = {
        "name": name,
        "title": name.replace("_", " ").capitalize(),
        "class_name": "".join(map(str.capitalize, name.split("_"))),
        "plugin_from_test": plugin.name if project is None else f"../{package}/{name}.py",
        "plugin_option": f" --plugin {plugin}" if project is None else "",
        **{"group": _GROUPS[kind], "project": project, "package": package},
    }
    for path, template in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        text = templates.get_template(f"{template}.jinja").render(values)
        path.write_text(text, encoding="utf-8", newline="\n")
        click.echo(f"Wrote {path}")
    click.echo("\nIt works as it is. Replace what it does in both files, then:")
    click.echo(f"  smmd-bench validate {plugin}\n  python -m pytest {test}")
    if project is not None:
        (plugin.parent / "__init__.py").write_text(f'"""Plugins of {project} for smmd-bench."""\n')
        click.echo(f"To use it by its name alone: pip install -e {root}/")


def _require_free(module: str) -> None:
    """Raise UserError for a name that no module can have, or that one of Python's has."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", module) or keyword.iskeyword(module):
        raise UserError(f"'{module}' is no name: take a-z, 0-9 and _, a letter first.")
    if module in sys.stdlib_module_names:
        raise UserError(f"{module} would hide the module {module}: choose another name.")
