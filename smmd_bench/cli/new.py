"""`smmd-bench new`: a working plugin to start from, with its test."""

from __future__ import annotations

import importlib.util
import keyword
import re
import shlex
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
    from ..plugin_system.registry import names

    _require_word(name, kind)
    if name in names(_GROUPS[kind]):
        raise UserError(f"There is a {kind} '{name}' already: choose another, such as my_{name}.")
    title, class_name = name.replace("_", " "), "".join(map(str.capitalize, name.split("_")))
    values = {"name": name, "title": title.capitalize(), "class_name": class_name}
    root, files = folder, {}
    if project is None:
        _require_free(name)
        plugin, test = folder / f"{name}.py", folder / f"test_{name}.py"
        values |= {"plugin_from_test": plugin.name, "plugin_option": f" --plugin {plugin}"}
    else:
        package, root = re.sub(r"[-.]", "_", project).lower(), folder / project
        _require_word(package, "project")
        _require_free(package)
        plugin, test = root / package / f"{name}.py", root / "tests" / f"test_{name}.py"
        values |= {"plugin_from_test": f"../{package}/{name}.py", "plugin_option": ""}
        values |= {"group": _GROUPS[kind], "project": project, "package": package}
        files[root / "pyproject.toml"] = _render("pyproject.toml", values)
        files[root / package / "__init__.py"] = f'"""Plugins of {project} for smmd-bench."""\n'
    files[plugin] = _render(f"{kind}.py", values)
    files[test] = _render(f"test_{kind}.py", values)
    for path in (plugin, test) if project is None else (root,):
        if path.exists():
            raise UserError(f"{path} exists already and stays as it is: choose another name.")
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
        click.echo(f"Wrote {path}")
    click.echo("\nIt works as it is. Replace what it does in both files, then:")
    click.echo(f"  smmd-bench validate {_quote(plugin)}\n  python -m pytest {_quote(test)}")
    if project is not None:
        click.echo(f"To use it by its name alone: pip install -e {_quote(root)}")


def _require_word(name: str, kind: str) -> None:
    """Raise UserError for a name that no module can have."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        nearest = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") or kind
        raise UserError(
            f"'{name}' cannot name a {kind}: take a-z, 0-9 and _, a letter first, such as "
            f"my_{nearest}."
        )


def _require_free(module: str) -> None:
    """Raise UserError where a module of this name can be imported already."""
    if module in sys.stdlib_module_names or importlib.util.find_spec(module) is not None:
        raise UserError(f"{module} would hide the module {module}: choose another name.")


def _render(template: str, values: dict[str, str]) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("smmd_bench.plugin_system", "templates")
    environment = Environment(
        loader=loader, undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False
    )
    return environment.get_template(f"{template}.jinja").render(values)


def _quote(path: Path) -> str:
    """The path as a shell and pip take it: a folder has a slash."""
    return shlex.quote(str(path) if path.suffix == ".py" else f"./{path}")
