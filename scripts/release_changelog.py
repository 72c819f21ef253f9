"""Turn Unreleased of CHANGELOG.md into a section of pyproject.toml's version, with the date.

`make release` runs it last. `git diff` shows what it changed; commit and tag that.
"""

from __future__ import annotations

import tomllib
from datetime import date
from pathlib import Path

UNRELEASED = "## Unreleased\n"


def release(changelog: str, version: str, day: date) -> str:
    """Put the heading of a version under that of Unreleased; exit if it has one, or if there is
    nothing to release."""
    if f"\n## {version} (" in changelog:
        raise SystemExit(
            f"CHANGELOG.md has a section {version}: raise `version` in pyproject.toml."
        )
    if f"{UNRELEASED}\n## " in changelog:
        raise SystemExit("CHANGELOG.md has nothing under Unreleased: write a line.")
    return changelog.replace(UNRELEASED, f"{UNRELEASED}\n## {version} ({day})\n", 1)


if __name__ == "__main__":
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
    target = Path("CHANGELOG.md")
    before = target.read_text(encoding="utf-8")
    after = release(before, project["project"]["version"], date.today())
    target.write_text(after, encoding="utf-8")
