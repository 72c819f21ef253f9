"""Digests of what Python modules do: of their statements, and of the modules that they import.

Comments, docstrings and formatting do not count. The syntax tree is written out here and not by
`ast.dump`, whose text differs between versions of Python.
"""

from __future__ import annotations

import ast
import hashlib
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import resolve_name
from pathlib import Path
from typing import Any

from ..storage.addresses import address

Belongs = Callable[[str, Path], bool]
"""`belongs(name, file)`: whether a module is one of those that count."""


def module_digests(
    name: str, file: Path, belongs: Belongs, beside: Sequence[Path] = ()
) -> dict[str, str]:
    """The digest of a module and of every module that it imports and that belongs, by name.

    Imports count wherever they stand, also in functions; calls of `importlib.import_module` do not.
    `beside`: folders that may hold a top-level name which the import path lacks. A module without
    a statement has no digest.
    """
    found: dict[str, str | None] = {}
    waiting = [(name, file), *_reached(_parent(name), belongs, beside)]
    while waiting:
        module, path = waiting.pop()
        if module in found:
            continue
        status = path.stat()
        found[module], imports = _read(path, status.st_size, status.st_mtime_ns)
        package = module if path.name.startswith("__init__.") else _parent(module)
        for statement in imports:
            for imported in _imported(statement, package):
                waiting += _reached(imported, belongs, beside)
    return {module: digest for module, digest in found.items() if digest is not None}


@lru_cache(maxsize=4096)
def _read(
    file: Path, size: int, mtime: int
) -> tuple[str | None, tuple[ast.Import | ast.ImportFrom, ...]]:
    """The digest of a file (None: it has no statement; of its bytes if it cannot be parsed), and
    its imports."""
    content = file.read_bytes()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python gives them where it imports the file
            tree = ast.parse(content)
        body = _plain(tree.body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # compiled, or no Python
        return hashlib.blake2b(content, digest_size=8).hexdigest(), ()
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
    return address({"body": body}) if body else None, tuple(imports)


def _plain(value: Any) -> Any:
    """A syntax tree as lists and texts, without `pass`, statements that are only a constant, and
    empty fields, of which newer versions of Python have more."""
    if isinstance(value, ast.Constant):
        return ["Constant", repr(value.value)]
    if isinstance(value, ast.AST):
        fields = [
            [name, _plain(field)]
            for name, field in ast.iter_fields(value)
            if name != "type_comment" and field is not None
        ]
        return [type(value).__name__, *(pair for pair in fields if pair[1] != [])]
    if isinstance(value, list):
        return [_plain(item) for item in value if not _is_idle(item)]
    return repr(value)


def _is_idle(node: Any) -> bool:
    return isinstance(node, ast.Pass) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )


def _imported(statement: ast.Import | ast.ImportFrom, package: str) -> Iterator[str]:
    """Full names of all that an import statement in a module of `package` may import."""
    if isinstance(statement, ast.Import):
        yield from (alias.name for alias in statement.names)
        return
    try:
        module = resolve_name("." * statement.level + (statement.module or ""), package)
    except ImportError:  # it leaves the package, so it fails at run time, too
        return
    yield module
    yield from (f"{module}.{alias.name}" for alias in statement.names if alias.name != "*")


def _reached(name: str, belongs: Belongs, beside: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    """The modules that importing `name` runs, from its top-level package down, that belong."""
    places: Sequence[str] | None = None
    parts = name.split(".") if name else []
    for end in range(1, len(parts) + 1):
        prefix = ".".join(parts[:end])
        spec = _find(prefix, places)
        if spec is None and end == 1:
            spec = PathFinder.find_spec(prefix, [str(folder) for folder in beside])
        if spec is None:
            return
        if spec.has_location and spec.origin and belongs(prefix, Path(spec.origin)):
            yield prefix, Path(spec.origin)
        places = spec.submodule_search_locations
        if places is None:
            return


def _find(name: str, places: Sequence[str] | None) -> ModuleSpec | None:
    """The specification by which Python imports a module; nothing is imported to find it."""
    spec: ModuleSpec | None = getattr(sys.modules.get(name), "__spec__", None)
    for finder in sys.meta_path if spec is None else ():
        spec = finder.find_spec(name, places)
        if spec is not None:
            break
    return spec


def _parent(name: str) -> str:
    return name.rpartition(".")[0]
