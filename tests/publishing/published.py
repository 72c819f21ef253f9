"""Reports as tests write them: objects, or a file that `--plugin` names."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path

from smmd_bench.contracts import Artefact, Report
from smmd_bench.publishing.make_report import Section, make_report
from smmd_bench.publishing.page import write_page
from smmd_bench.results.frames import RunFrames

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


class Told:
    """A report that builds, or says, what it is told."""

    paper = "Table 0"

    def __init__(
        self, name: str, build: Callable[[], Artefact], title: str = "", reason: str | None = None
    ) -> None:
        self.name, self.title, self.make, self.reason = name, title or name, build, reason

    def skip(self, run: RunFrames) -> str | None:
        return self.reason

    def build(self, run: RunFrames) -> Artefact:
        return self.make()


def publish(run: RunFrames, reports: Iterable[Report]) -> list[Section]:
    """Build the reports, and write their files and the page."""
    sections = [make_report(run, report) for report in reports]
    write_page(run, sections)
    return sections


def write_plugin(file: Path, **bodies: str) -> Path:
    """A plugin file with a report of each name, whose `build(self, run)` has that body."""
    bodies = {name: textwrap.dedent(body).strip() for name, body in bodies.items()}
    reports = (
        REPORT.format(name=name) + textwrap.indent(body, " " * 8) + "\n"
        for name, body in bodies.items()
    )
    file.write_text(IMPORTS + "".join(reports))
    return file
