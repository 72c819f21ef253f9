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
_USES = {
    "task": "smmd-bench train-eval --task {} --losses ce,smmd",
    "loss": "smmd-bench train-eval --task arithmetic --losses ce,{}",
    "report": "smmd-bench report runs/NAME",
}


@click.command()
@click.argument("kind", type=click.Choice(list(_GROUPS)))
@click.argument("name")
@click.option(
    "--folder", type=options.PATH, default=Path(), show_default="this one", help="Where it goes."
)
@click.option("--project", help="Make a new project of this name around it.")
def command(kind: str, name: str, folder: Path, project: str | None) -> None:
    """Write a task, loss or report of your own, with its test.

    The plugin NAME works as it is: a file for --plugin, or a project that pip installs. No file is
    ever overwritten.

    \b
    Examples:
      smmd-bench new task boiling_point
      smmd-bench new loss earth_mover --folder plugins
      smmd-bench new report by_length --project my-benchmark
    """
    _require_name(kind, name, alone=project is None)
    title, class_name = name.replace("_", " "), "".join(map(str.capitalize, name.split("_")))
    values = {"name": name, "title": title.capitalize(), "class_name": class_name}
    if project is None:
        plugin, test = folder / f"{name}.py", folder / f"test_{name}.py"
        more = {"plugin_from_test": plugin.name, "plugin_option": f" --plugin {plugin.as_posix()}"}
        files = {}
    else:
        package, root = _package_of(project), folder / project
        if root.exists():
            raise UserError(f"{root} exists already: choose another --project.")
        plugin, test = root / package / f"{name}.py", root / "tests" / f"test_{name}.py"
        more = {"plugin_from_test": f"../{package}/{name}.py", "plugin_option": ""}
        values |= {"group": _GROUPS[kind], "project": project, "package": package}
        files = {
            root / "pyproject.toml": _render("pyproject.toml", values),
            root / package / "__init__.py": f'"""Plugins of {project} for smmd-bench."""\n',
        }
    files[plugin] = _render(f"{kind}.py", {**values, **more})
    files[test] = _render(f"test_{kind}.py", {**values, **more})
    for path in files:
        if path.exists():
            raise UserError(f"{path} exists already and stays as it is: choose another name.")
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
        click.echo(f"Wrote {path}")
    at = _quote(plugin)
    click.echo(f"\nIt works as it is. Replace what it does in {at} and in its test, then:")
    click.echo(f"  smmd-bench validate {at}\n  python -m pytest {_quote(test)}")
    click.echo(f"  {_USES[kind].format(name)} --plugin {at}")
    if project is not None:
        click.echo(f"To use it by its name alone: pip install -e {_quote(root)}")


def _require_name(kind: str, name: str, *, alone: bool) -> None:
    """Raise UserError for a name that no new plugin of the kind can have."""
    from ..plugin_system.registry import names

    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        nearest = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") or kind
        raise UserError(
            f"'{name}' cannot name a {kind}: take lower-case letters, digits and underscores, a "
            f"letter first, such as my_{nearest}."
        )
    if name in names(_GROUPS[kind]):
        raise UserError(
            f"There is a {kind} '{name}' already: choose another name, such as my_{name}."
        )
    if alone:
        _require_free(name, "name")


def _package_of(project: str) -> str:
    """The name of a new project's package; raises UserError where it cannot be imported."""
    package = re.sub(r"[-.]", "_", project).lower()
    if not package.isascii() or not package.isidentifier() or keyword.iskeyword(package):
        raise UserError(
            f"'{project}' cannot name a project: take letters, digits, '-' and '_', a letter "
            "first, and not a keyword of Python."
        )
    _require_free(package, "--project")
    return package


def _require_free(module: str, what: str) -> None:
    """Raise UserError where a module of this name can be imported already."""
    if module in sys.stdlib_module_names or importlib.util.find_spec(module) is not None:
        raise UserError(f"{module} would hide the module {module}: choose another {what}.")


def _render(template: str, values: dict[str, str]) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("smmd_bench.plugin_system", "templates")
    environment = Environment(
        loader=loader, undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False
    )
    return environment.get_template(f"{template}.jinja").render(values)


def _quote(path: Path) -> str:
    text = path.as_posix()
    return shlex.quote(text if "/" in text or path.suffix == ".py" else f"./{text}")
