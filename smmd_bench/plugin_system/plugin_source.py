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
    return _digest(plugin)


@cache  # by class, because that is the code that this process runs
def _digest(plugin: type) -> str | None:
    top = plugin.__module__.partition(".")[0]
    file = getattr(sys.modules.get(plugin.__module__), "__file__", None)
    if top == "smmd_bench" or file is None or not Path(file).is_file():
        return None
    package = getattr(sys.modules.get(top), "__file__", None) if top != plugin.__module__ else None
    folder = Path(package or file).parent
    files = sorted(folder.rglob("*.py")) if package else [Path(file)]
    return address({str(f.relative_to(folder)) if package else "": _statements(f) for f in files})


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
    tree = ast.parse(file.read_bytes())
    for node in ast.walk(tree):
        if isinstance(body := getattr(node, "body", None), list):
            texts = [
                s for s in body if isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)
            ]
            node.body = [s for s in body if s not in texts]  # type: ignore[attr-defined]
    return ast.unparse(tree)
