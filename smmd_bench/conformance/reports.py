"""The checks of a report: on runs without a cell, without results, of one cell, and full ones."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..contracts import Artefact, Report
from ..publishing import tables
from ..publishing.latex import to_latex
from ..publishing.style import figure_style
from ..results.frames import RunFrames, read_run
from .checks import Finding, UncheckedError, checked, require, say
from .generated_runs import GeneratedRuns

if TYPE_CHECKING:
    import pandas as pd


def report_findings(report: Report, runs: GeneratedRuns) -> list[Finding]:
    """Everything that is checked of a report."""
    suite = _Suite(report)
    checks: dict[str, Callable[[], str]] = {
        "contract": suite.contract,
        "an empty run": lambda: suite.tried(runs.empty),
        "a run of one cell": lambda: suite.tried(runs.one_cell),
        "a full run": lambda: suite.built(runs.full),
    }
    return [checked(name, function) for name, function in checks.items()]


@dataclass(frozen=True)
class _Suite:
    report: Report

    def contract(self) -> str:
        """The attributes of `Report`."""
        report = self.report
        require(isinstance(report, Report), "it lacks an attribute or method of Report")
        require(bool(report.title.strip()), "its title is empty")
        return f"{report.title} ({report.paper})" if report.paper else report.title

    def tried(self, runs: dict[str, Path]) -> str:
        """It skips with a reason, or can be built, and raises nothing."""
        skipped = 0
        for what, folder in runs.items():
            skipped += self._artefact(read_run(folder), what) is None
        return f"{skipped} skipped, {len(runs) - skipped} built"

    def built(self, runs: dict[str, Path]) -> str:
        """The same, twice over; and at least one is not skipped."""
        parts: list[str] = []
        reasons: list[str] = []
        for what, folder in runs.items():
            run = read_run(folder)
            before = run.metrics.copy(), run.cells.copy()
            first = self._artefact(run, what)
            if first is None:
                reasons.append(f"{what}: {self.report.skip(run)}")
                continue
            require(
                before[0].equals(run.metrics) and before[1].equals(run.cells),
                "it changes a frame of the run in place, which other reports read: work on a copy",
            )
            with figure_style():
                again = self.report.build(read_run(folder))
            for name in ("table", "data"):
                require(
                    _csv(getattr(first, name)) == _csv(getattr(again, name)),
                    f"the {name} of a run {what} is another when it is made again",
                )
            require(first.caption == again.caption, "the caption is another at every call")
            made = [
                name for name in ("table", "figure", "data") if getattr(first, name) is not None
            ]
            parts.append(f"{what}: {', '.join(made)}")
        if not parts:
            raise UncheckedError(
                f"it skips all of them ({'; '.join(reasons)}): give a run of yours with --run"
            )
        return f"{'; '.join(parts)}; the same when made again"

    def _artefact(self, run: RunFrames, what: str) -> Artefact | None:
        """What it makes of a run, rendered in every format; None: skipped."""
        try:
            reason = self.report.skip(run)
            if reason is not None:
                require(
                    isinstance(reason, str) and bool(reason.strip()),
                    f"skip gives {reason!r} for a run {what}: a reason, or None",
                )
                return None
            with figure_style():
                artefact = self.report.build(run)
        except Exception as error:
            if type(error).__module__ == UncheckedError.__module__:
                raise
            require(False, f"a run {what}: {say(error)}")
            raise
        require(isinstance(artefact, Artefact), f"build returns a {type(artefact).__name__}")
        require(bool(artefact.caption.strip()), f"the caption of a run {what} is empty")
        require(
            artefact.table is not None or artefact.figure is not None,
            f"there is neither a table nor a figure of a run {what}",
        )
        _render(artefact, self.report)
        return artefact


def _render(artefact: Artefact, report: Report) -> None:
    """As `smmd-bench report` writes it."""
    for frame in (artefact.table, artefact.data):
        if frame is not None:
            tables.to_csv(frame)
    if artefact.table is not None:
        tables.to_markdown(artefact.table)
        to_latex(artefact.table, f"{report.title}. {artefact.caption}", "tab:x")
    if artefact.figure is not None:
        with figure_style():
            artefact.figure.savefig(io.BytesIO(), format="png")


def _csv(frame: pd.DataFrame | None) -> str:
    return "" if frame is None else tables.to_csv(frame)
