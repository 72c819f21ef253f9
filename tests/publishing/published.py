"""Reports as tests write them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from smmd_bench.contracts import Artefact, Report
from smmd_bench.publishing.page import Section, write_page
from smmd_bench.publishing.write_reports import make_report
from smmd_bench.results.frames import RunFrames


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
