"""Turn Unreleased of CHANGELOG.md into a section of the version in pyproject.toml, with today's date.

`make release` runs it last. `git diff` shows what it changed; commit and tag that.
"""

from __future__ import annotations

import sys
import tomllib
from datetime import date
from pathlib import Path

UNRELEASED = "## Unreleased\n"


def release(changelog: str, version: str, day: date) -> str:
    """Put the heading of a version under that of Unreleased. Raises ValueError if it has one, or
    if nothing stands there."""
    if f"\n## {version} (" in changelog:
        raise ValueError(
            f"CHANGELOG.md has a section {version}: raise `version` in pyproject.toml."
        )
    _, heading, after = changelog.partition(UNRELEASED)
    if not heading or not after.partition("\n## ")[0].strip():
        raise ValueError("CHANGELOG.md has nothing under Unreleased: write a line.")
    return changelog.replace(heading, f"{heading}\n## {version} ({day})\n", 1)


if __name__ == "__main__":
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
    target = Path("CHANGELOG.md")
    before = target.read_text(encoding="utf-8")
    try:
        after = release(before, project["project"]["version"], date.today())
    except ValueError as error:
        sys.exit(f"Error: {error}")
    target.write_text(after, encoding="utf-8")
