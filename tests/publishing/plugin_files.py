"""Reports as people write them: in a file that `--plugin` names."""

from __future__ import annotations

import textwrap
from pathlib import Path

IMPORTS = """
from dataclasses import dataclass
from typing import ClassVar
import pandas as pd
from smmd_bench.contracts import Artefact
from smmd_bench.publishing.style import new_figure
"""


def write_plugin(file: Path, **bodies: str) -> Path:
    """A plugin file with a report of each name, whose `build(self, run)` has that body."""
    file.write_text(IMPORTS + "".join(_report(name, body) for name, body in bodies.items()))
    return file


def _report(name: str, body: str) -> str:
    return f"""
@dataclass(frozen=True)
class {name.title().replace("_", "")}:
    name: ClassVar[str] = "{name}"
    title: ClassVar[str] = "{name.replace("_", " ").capitalize()}"
    paper: ClassVar[str] = "not in the paper"

    def skip(self, run):
        return None

    def build(self, run):
{textwrap.indent(textwrap.dedent(body).strip(), " " * 8)}
"""
