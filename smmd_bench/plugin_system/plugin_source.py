"""What a plugin of somebody else does, as a digest of its source: a part of its addresses.

A first-party plugin is addressed by its `version` alone, and so is what a plugin imports from
elsewhere. Data files that a plugin opens are not covered: a task's `identity` is for them.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ..storage.addresses import address


def source_digest(plugin: type) -> str | None:
    """The digest of a plugin class's file, or of its package if it lies in one. Comments,
    docstrings and formatting do not count. None: the class is first-party, or in no file."""
    # mypy takes a class for nothing hashable, so that callers see a plain function.
    return _digest(plugin)


@cache  # by class, because that is the code that this process runs
def _digest(plugin: type) -> str | None:
    file = _file_of(plugin.__module__)
    package_name = plugin.__module__.partition(".")[0]
    # First-party plugins are keyed by their version, so that a cleaner file redoes nothing.
    if package_name == "smmd_bench" or file is None or not file.is_file():
        return None
    package = None if package_name == plugin.__module__ else _file_of(package_name)
    if package is None:
        return address({"": _statements(file)})

    # A module may use any other of its package.
    folder = package.parent
    files = sorted(folder.rglob("*.py"))
    return address({str(file.relative_to(folder)): _statements(file) for file in files})


def _file_of(module: str) -> Path | None:
    file = getattr(sys.modules.get(module), "__file__", None)
    return None if file is None else Path(file)


def version_of(plugin: Any) -> Any:
    """The version of a plugin or a metric, with the digest of its source if it has one."""
    digest = source_digest(type(plugin))
    return plugin.version if digest is None else [plugin.version, digest]


def with_source(identity: Mapping[str, Any], plugin: Any) -> dict[str, Any]:
    """An identity with the key `source` where the plugin's source has a digest."""
    digest = source_digest(type(plugin))
    return {**identity} if digest is None else {**identity, "source": digest}


def _statements(file: Path) -> str:
    """The code of a file as Python writes it, without statements that are only a constant."""
    # Back from the syntax tree, a file has no comments and one way of formatting.
    tree = ast.parse(file.read_bytes())
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):  # of a lambda it is an expression
            kept = [statement for statement in body if not _is_constant(statement)]
            node.body = kept  # type: ignore[attr-defined]
    return ast.unparse(tree)


def _is_constant(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
