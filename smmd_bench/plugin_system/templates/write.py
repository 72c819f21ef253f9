"""Where a new plugin goes, and its files: nothing is written unless all of it can be."""

from __future__ import annotations

import os
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from ...errors import UserError
from ...storage.files import write_text
from ..registry import Group, singular
from .entry_points import lines_of, with_entry_point
from .names import check_name, class_name, hides_a_module, is_module_name


@dataclass
class Written:
    """The files of a new plugin. `changed`: the pyproject.toml that existed before; `entry_point`:
    lines that the user has to add to it."""

    plugin: Path
    test: Path
    files: dict[Path, str] = field(default_factory=dict)
    changed: Path | None = None
    entry_point: str | None = None


def into_current_project(group: Group, name: str, folder: Path | None) -> Written:
    """Write into the project of the current folder, or, without one, a plugin file and its test."""
    settings = Path("pyproject.toml")
    text, content = _read(settings) if settings.is_file() else ("", {})
    project = content.get("project", {}).get("name", "")
    if not settings.is_file() or (folder is None and project == "smmd-bench"):
        check_name(group, name, in_package=False)
        home = folder or Path()
        written = Written(home / f"{name}.py", home / f"test_{name}.py")
        return _write(written, group, name, by_file=True)
    home = folder or _find_package(project)
    modules = _check_home(home, project)
    check_name(group, name, in_package=(home / "__init__.py").is_file())
    written = Written(home / f"{name}.py", Path("tests") / f"test_{name}.py")
    value = f"{'.'.join([*modules, name])}:{class_name(name)}"
    changed = with_entry_point(text, group, name, value)
    if changed is None:
        written.entry_point = lines_of(group, name, value)
    else:
        written.changed = settings
        written.files[settings] = changed
    return _write(written, group, name, by_file=False)


def into_new_project(group: Group, name: str, project: str, folder: Path | None) -> Written:
    """Write a project of that name: pyproject.toml, a package with the plugin, its test."""
    package = _module_name(project)
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9._-]*", project) or not is_module_name(package):
        raise UserError(
            f"'{project}' cannot name a project: take letters, digits, '-' and '_', a letter "
            "first, and not a keyword of Python."
        )
    if hides_a_module(package):
        raise UserError(
            f"The package {package} of the project would hide the module of that name: choose "
            f"another --project, such as my-{project}."
        )
    check_name(group, name, in_package=True)
    root = (folder or Path()) / project
    if root.exists():
        raise UserError(
            f"{root} exists already: choose another --project, or run the command in that folder "
            "without it."
        )
    written = Written(root / package / f"{name}.py", root / "tests" / f"test_{name}.py")
    settings = _render("pyproject.toml", group=group, name=name, project=project, package=package)
    written.files = {
        root / "pyproject.toml": settings,
        root / package / "__init__.py": f'"""Plugins of {project} for smmd-bench."""\n',
    }
    return _write(written, group, name, by_file=False)


def _write(written: Written, group: Group, name: str, *, by_file: bool) -> Written:
    """Write the plugin and its test first, so that no entry point names a file that is missing."""
    from_test = os.path.relpath(written.plugin, written.test.parent).replace(os.sep, "/")
    option = f" --plugin {written.plugin.as_posix()}" if by_file else ""
    kind = singular(group)
    own = {written.plugin: f"{kind}.py", written.test: f"test_{kind}.py"}
    for path in own:
        if path.exists():
            raise UserError(f"{path} exists already and stays as it is: choose another name.")
    texts = {
        path: _render(template, name=name, plugin_from_test=from_test, plugin_option=option)
        for path, template in own.items()
    }
    written.files = {**texts, **written.files}
    new = {p for path in written.files for p in (path, *path.parents) if not p.exists()}
    try:
        for path, text in written.files.items():
            write_text(path, text)
    except BaseException:
        for path in sorted(new, reverse=True):  # what is in a folder, then the folder
            if path.is_dir():
                path.rmdir()
            elif path.exists():
                path.unlink()
        raise
    return written


def _render(template: str, *, name: str, **values: Any) -> str:
    environment = Environment(
        loader=PackageLoader(__name__.rpartition(".")[0], "."),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,
    )
    title = name.replace("_", " ").capitalize()
    return environment.get_template(f"{template}.jinja").render(
        name=name, class_name=class_name(name), title=title, **values
    )


def _read(settings: Path) -> tuple[str, dict[str, Any]]:
    try:
        text = settings.read_bytes().decode("utf-8")
        return text, tomllib.loads(text)
    except ValueError as error:
        raise UserError(
            f"{settings.resolve()} is not valid TOML ({error}): fix it, or give another folder."
        ) from error


def _module_name(project: str) -> str:
    return re.sub(r"[-.]", "_", project).lower()


def _find_package(project: str) -> Path:
    """The folder of the project's package; the current folder if there is none."""
    name = re.sub(r"[-.]", "_", project)
    for folder in (Path("src") / name, Path(name), Path("src") / name.lower(), Path(name.lower())):
        if name and (folder / "__init__.py").is_file():
            return folder
    return Path()


def _check_home(home: Path, project: str) -> list[str]:
    """The packages that a folder is, seen from the project's folder or its `src`.

    Raises UserError for a folder whose files could not be imported from the installed project.
    """
    remedy = "choose another --folder, or leave it out"
    if not home.resolve().is_relative_to(Path.cwd()):
        raise UserError(
            f"{home} is outside the project in {Path.cwd()}: choose a folder in it, or run the "
            "command in another."
        )
    below = Path(os.path.relpath(home))
    parts = [part for part in below.parts if part != "."]
    modules = parts[1:] if parts[:1] == ["src"] else parts
    if bad := [part for part in modules if not is_module_name(part)]:
        raise UserError(
            f"Files in {home} cannot be imported, because '{bad[0]}' cannot name a module: "
            f"{remedy}."
        )
    if not modules or modules[0].lower() == _module_name(project):
        return modules
    if hides_a_module(modules[0], [below, *below.parents][len(modules) - 1]):
        raise UserError(
            f"Files in {home} cannot be imported, because there is a module {modules[0]} "
            f"elsewhere: {remedy}."
        )
    return modules
