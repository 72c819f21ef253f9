"""Reports that are not registered, published as `publish_run` does those that are."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from smmd_bench.contracts import Artefact, Report
from smmd_bench.publishing.make_report import make_report
from smmd_bench.publishing.page import write_page
from smmd_bench.results.frames import RunFrames
from smmd_bench.storage.files import write_json


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


def publish(run: RunFrames, reports: Iterable[Report]) -> list[Path]:
    """Build the reports and write their files and the page; the page's path comes last."""
    sections = [make_report(run, report) for report in reports]
    return [*(path for section in sections for path in section.files), write_page(run, sections)]


def note_failed_figure(folder: Path) -> None:
    """What a run has on disk after a figure raised."""
    failed = {"loss_shapes": {"error": "no font", "traceback": "..."}}
    write_json(folder / "reports" / "failed.json", failed)
