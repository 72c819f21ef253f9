"""The harness reaches plugins only through the registry, and files and functions stay short.

The order of the harness's own folders is import-linter's to hold: see pyproject.toml.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOTS = ("plugins", "tasks", "reports")
FILES = [f for root in ("smmd_bench", *ROOTS) for f in (ROOT / root).rglob("*.py")]
SHOWN = [
    f
    for folder in ("examples", "smmd_bench/plugin_system/templates", "docs", "README.md")
    for f in ([ROOT / folder] if folder.endswith(".md") else (ROOT / folder).rglob("*"))
    if f.suffix in (".py", ".jinja", ".ipynb", ".md") and f.name != "decisions.md"
]


def imported_modules(source: str, file: Path, root: Path = ROOT) -> set[str]:
    """Absolute names of everything that a file imports, relative imports resolved."""
    parts = list(file.relative_to(root).with_suffix("").parts)
    package = parts if parts[0] == "smmd_bench" else ["smmd_bench", *parts]
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: -node.level] if node.level else []
            if node.level and file.name == "__init__.py":
                base = package[: len(package) - node.level]
            module = ".".join([*base, *filter(None, [node.module])])
            found |= {module} | {f"{module}.{alias.name}" for alias in node.names}
    return found


def forbidden_imports(source: str, file: Path) -> set[str]:
    """Imports of another root; plugins, tasks and reports may import the harness."""
    own = file.relative_to(ROOT).parts[0]
    others = [p for root in ROOTS if root != own for p in (f"smmd_bench.{root}", root)]
    names = imported_modules(source, file)
    return {n for n in names for p in others if n == p or n.startswith(f"{p}.")}


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(ROOT)))
def test_roots_do_not_import_each_other(file):
    assert not forbidden_imports(file.read_text(encoding="utf-8"), file)


def test_no_file_is_longer_than_300_lines():
    lengths = {str(f.relative_to(ROOT)): len(f.read_text().splitlines()) for f in FILES}
    assert not {name: n for name, n in lengths.items() if n > 300}


def test_no_function_is_longer_than_60_lines():
    assert not {
        f"{file.relative_to(ROOT)}: {name}": lines
        for file in FILES
        for name, lines in functions(file)
        if lines > 60
    }


def functions(file: Path) -> Iterator[tuple[str, int]]:
    """The name and the number of lines of every function."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, (node.end_lineno or 0) - node.lineno + 1


@pytest.mark.parametrize("file", SHOWN, ids=lambda f: str(f.relative_to(ROOT)))
def test_what_is_shown_to_authors_of_plugins_imports_the_public_names(file):
    text = file.read_text(encoding="utf-8")
    deeper = re.findall(r"(?:from|import) (smmd_bench\.(?!contracts\b)[\w.]+)", text)
    assert not deeper


REPORTS = [f for f in (ROOT / "reports").glob("*.py") if f.name != "overhead_table.py"]
"""The table of step times reads another kind of folder than a run's."""


@pytest.mark.parametrize("file", REPORTS, ids=lambda f: f.name)
def test_reports_read_a_run_through_its_frames_alone(file):
    """What is current is decided there: a report that opens a cell's file would get around it."""
    source = file.read_text(encoding="utf-8")
    paths = [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute) and node.attr == "path" and _is_run(node.value)
    ]
    assert not paths
    assert "smmd_bench.storage.files" not in imported_modules(source, file)


def _is_run(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "run"
