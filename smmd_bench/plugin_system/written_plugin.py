"""What the source of an installed plugin says of its class; nothing is imported to read it.

The import of torch or pandas takes seconds, and an answer to a mistyped name should not.
"""

from __future__ import annotations

import ast
from functools import cache
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from pathlib import Path


def written_summary(point: EntryPoint) -> str:
    """The first line of the class's docstring."""
    found = _written_class(point)
    return "" if found is None else (ast.get_docstring(found) or "").partition("\n")[0]


def written_text(point: EntryPoint, attribute: str) -> str | None:
    """A class attribute that is a text; None: the class does not spell it out."""
    found = _written_class(point)
    for item in found.body if found is not None else ():
        targets = item.targets if isinstance(item, ast.Assign) else [getattr(item, "target", None)]
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        value = getattr(item, "value", None)
        if attribute in names and isinstance(value, ast.Constant):
            return str(value.value)
    return None


def written_parameters(point: EntryPoint) -> list[str] | None:
    """The public names of the parameters; None: the class has a base, which may give it others."""
    found = _written_class(point)
    if found is None or found.bases:
        return None
    return [
        _public_name(item)
        for item in found.body
        if isinstance(item, ast.AnnAssign) and "ClassVar" not in ast.unparse(item.annotation)
    ]


def _public_name(item: ast.AnnAssign) -> str:
    """What `parameter(name=...)` says, else the field's own."""
    keywords = item.value.keywords if isinstance(item.value, ast.Call) else ()
    for keyword in keywords:
        if keyword.arg == "name" and isinstance(keyword.value, ast.Constant):
            return str(keyword.value.value)
    return ast.unparse(item.target)


@cache
def _written_class(point: EntryPoint) -> ast.ClassDef | None:
    spec = find_spec(point.module)
    if spec is None or spec.origin is None:
        return None
    for node in ast.parse(Path(spec.origin).read_bytes()).body:
        if isinstance(node, ast.ClassDef) and node.name == point.attr:
            return node
    return None
