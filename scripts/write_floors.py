"""Write requirements-floors.txt: the lowest versions that pyproject.toml allows for reports.

`tests/packaging/test_floors.py` installs them and makes the reports of a run with them.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "requirements-floors.txt"
HEAD = """\
# The lowest versions that pyproject.toml allows, of what reports need; without torch and models.
# Made by scripts/write_floors.py; tests/packaging/test_floors.py writes reports with them.
"""
MODELS = {
    "accelerate",
    "datasets",
    "huggingface-hub",
    "peft",
    "safetensors",
    "transformers",
}
"""For training and decoding only: their lowest versions are those of the lock."""


def render() -> str:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    found = [Requirement(line) for line in project["dependencies"]]
    found = [r for r in found if canonicalize_name(r.name) not in MODELS]
    lines = []
    for one in found:  # each has one lowest version
        (floor,) = (s.version for s in one.specifier if s.operator in (">=", "=="))
        lines.append(f"{canonicalize_name(one.name)}=={floor}\n")
    return HEAD + "".join(sorted(lines))


if __name__ == "__main__":
    TARGET.write_text(render(), encoding="utf-8")
