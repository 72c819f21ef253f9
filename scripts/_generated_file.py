"""A file of docs/ that a script makes: `--check` compares it instead of writing it."""

from __future__ import annotations

import sys
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"


def write_or_check(name: str, text: str) -> None:
    """Write docs/NAME; with `--check`, exit with what to do if it has another text."""
    target = DOCS / name
    if "--check" not in sys.argv:
        target.write_text(text, encoding="utf-8")
    elif not target.exists() or target.read_text(encoding="utf-8") != text:
        sys.exit(f"docs/{name} is out of date: run `make docs`.")
