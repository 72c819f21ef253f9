"""Reports as people write them: in a file that `--plugin` names."""

from __future__ import annotations

import textwrap
from pathlib import Path

IMPORTS = """
from dataclasses import dataclass
from typing import ClassVar
import pandas as pd
from smmd_bench import new_figure
from smmd_bench.contracts import Artefact
"""
REPORT = """
@dataclass(frozen=True)
class {name}:
    name: ClassVar[str] = "{name}"
    title: ClassVar[str] = "{name}"
    paper: ClassVar[str] = "not in the paper"

    def skip(self, run):
        return None

    def build(self, run):
"""


def write_plugin(file: Path, **bodies: str) -> Path:
    """A plugin file with a report of each name, whose `build(self, run)` has that body."""
    bodies = {name: textwrap.dedent(body).strip() for name, body in bodies.items()}
    reports = (
        REPORT.format(name=name) + textwrap.indent(body, " " * 8) + "\n"
        for name, body in bodies.items()
    )
    file.write_text(IMPORTS + "".join(reports))
    return file
