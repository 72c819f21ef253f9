"""The harness reaches plugins only through the registry; the roots never import each other."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOTS = ("plugins", "tasks", "reports")
FILES = [f for root in ("smmd_bench", *ROOTS) for f in (ROOT / root).rglob("*.py")]


def imported_modules(file: Path) -> set[str]:
    """Absolute names of everything that a file imports, relative imports resolved."""
    parts = list(file.relative_to(ROOT).with_suffix("").parts)
    package = parts if parts[0] == "smmd_bench" else ["smmd_bench", *parts]
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: -node.level] if node.level else []
            if node.level and file.name == "__init__.py":
                base = package[: len(package) - node.level]
            module = ".".join([*base, *filter(None, [node.module])])
            found |= {module} | {f"{module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(ROOT)))
def test_imports_follow_the_rule(file: Path) -> None:
    own = file.relative_to(ROOT).parts[0]
    forbidden = {
        prefix for other in ROOTS if other != own for prefix in (f"smmd_bench.{other}", other)
    }
    wrong = {
        name
        for name in imported_modules(file)
        for prefix in forbidden
        if name == prefix or name.startswith(f"{prefix}.")
    }
    assert not wrong


def test_the_rule_can_fail(tmp_path: Path) -> None:
    file = ROOT / "smmd_bench" / "x.py"
    source = "from .plugins.losses import ce\nimport smmd_bench.tasks.arithmetic\n"
    tree = tmp_path / "x.py"
    tree.write_text(source)
    global_root = imported_modules.__globals__
    old = global_root["ROOT"]
    global_root["ROOT"] = tmp_path
    try:
        (tmp_path / "smmd_bench").mkdir()
        planted = tmp_path / "smmd_bench" / file.name
        planted.write_text(source)
        found = imported_modules(planted)
    finally:
        global_root["ROOT"] = old
    assert "smmd_bench.plugins.losses" in found
    assert "smmd_bench.tasks.arithmetic" in found


def test_no_file_is_longer_than_400_lines() -> None:
    long = {f.name: n for f in FILES if (n := len(f.read_text().splitlines())) > 400}
    assert not long


REPORTS = [f for f in (ROOT / "reports").glob("*.py") if f.name != "overhead_table.py"]
"""The table of step times reads another kind of folder than a run's."""


@pytest.mark.parametrize("file", REPORTS, ids=lambda f: f.name)
def test_reports_read_a_run_through_its_frames_alone(file: Path) -> None:
    """What is current is decided there: a report that opens a cell's file would get around it."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    paths = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "path" and _is_run(node.value)
    ]
    assert not paths
    assert "smmd_bench.storage.files" not in imported_modules(file)


def _is_run(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "run"
