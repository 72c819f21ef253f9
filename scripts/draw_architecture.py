"""Draw docs/images/architecture.svg: the rooms of the code, and which room imports which.

Both follow from the source: a room's sentence is the first line of its docstring, and a dot is an
import, type-checking imports left out. The order of the rooms is that of import-linter's layers in
pyproject.toml, and an import against it is a red dot. `--check` fails where the picture is out of
date.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator
from html import escape
from pathlib import Path

import grimp
from _generated_file import write_or_check

import smmd_bench

SOURCE = Path(smmd_bench.__file__).parent.parent
ROOTS = ("reports", "tasks", "plugins")
PROJECT = tomllib.loads((SOURCE / "pyproject.toml").read_text(encoding="utf-8"))
ROOMS = tuple(PROJECT["tool"]["importlinter"]["contracts"][0]["layers"])
STEP, TOP, LEFT, FAR = 24, 118, 126, 720
STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1f2328 } .name { font-weight: 600 }
rect { fill: #fff } line { stroke: #d8dee4 } circle { fill: #2f6f9f } circle.up { fill: #c0392b }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } rect { fill: #0d1117 } line { stroke: #30363d } circle { fill: #6cb6ff }
}
"""


def imports() -> set[tuple[str, str]]:
    """Pairs of rooms (or roots) of which the first imports the second."""
    sys.path.insert(0, str(SOURCE))
    graph = grimp.build_graph(
        "smmd_bench", *ROOTS, exclude_type_checking_imports=True, cache_dir=None
    )
    pairs = {
        (_room(module), _room(other))
        for module in graph.modules
        for other in graph.find_modules_directly_imported_by(module)
    }
    rooms = {*ROOTS, *ROOMS}
    return {(a, b) for a, b in pairs if a != b and {a, b} <= rooms}


def _room(module: str) -> str:
    parts = module.split(".")
    return parts[1] if parts[0] == "smmd_bench" and len(parts) > 1 else parts[0]


def purpose(room: str) -> str:
    """The first line of a room's docstring."""
    folder = SOURCE / (room if room in ROOTS else f"smmd_bench/{room}")
    file = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    docstring = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8")))
    assert docstring, f"{file} has no docstring"
    return docstring.partition("\n")[0].replace("`", "").removesuffix(".")


def render() -> str:
    rows = (*ROOTS, *ROOMS)
    width, height = FAR + STEP * len(ROOMS) + 48, TOP + STEP * len(rows) + 8
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">',
        f"<style>{STYLE}</style>",
        f'<rect width="{width}" height="{height}"/>',
        f'<text x="12" y="{TOP - 30}">A dot: the room on the left imports the room above.</text>',
        *_columns(height),
        *_rows(rows, width),
    ]
    pairs = imports()
    for y, row in enumerate(rows):
        for x, column in enumerate(ROOMS):
            if (row, column) in pairs:
                kind = ' class="up"' if row in ROOMS and ROOMS.index(row) > x else ""
                at = f'cx="{FAR + STEP * x + 12}" cy="{TOP + STEP * y + 12}"'
                lines.append(
                    f'<circle{kind} {at} r="5"><title>{row} imports {column}</title></circle>'
                )
    return "\n".join([*lines, "</svg>", ""])


def _columns(height: int) -> Iterator[str]:
    for x, room in enumerate(ROOMS):
        at = FAR + STEP * x + 12
        yield f'<line x1="{at}" y1="{TOP}" x2="{at}" y2="{height - 8}"/>'
        yield f'<text transform="translate({at + 4} {TOP - 8}) rotate(-60)">{room}</text>'


def _rows(rows: tuple[str, ...], width: int) -> Iterator[str]:
    for y, room in enumerate(rows):
        at = TOP + STEP * y + 16
        if room == ROOMS[0]:
            yield f'<line x1="12" y1="{at - 16}" x2="{width - 48}" y2="{at - 16}"/>'
        yield f'<text class="name" x="12" y="{at}">{room}</text>'
        yield f'<text x="{LEFT}" y="{at}">{escape(purpose(room))}</text>'


if __name__ == "__main__":
    write_or_check("images/architecture.svg", render())
