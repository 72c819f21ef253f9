"""The end of a command on a run: its reports, its failures, where the results are, its status."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .voice import Voice, print_json, summary_of

if TYPE_CHECKING:
    from ..publishing.page import Section
    from ..run.pipeline import Outcome


def publish_reports(voice: Voice, folder: Path) -> list[Section]:
    """Make the tables, figures and page of a run, as `write_reports` does."""
    from ..publishing.write_reports import write_reports

    with voice.progress() as progress:
        sections = write_reports(folder, progress)
    note_old_code(voice, folder)
    return sections


def note_old_code(voice: Voice, run: Path) -> None:
    """Say which plugins have changed since the run was made with them."""
    from ..results.availability import describe_old_code
    from ..results.frames import read_run

    for sentence in describe_old_code(read_run(run)):
        voice.note(f"Note: {sentence}")


def conclude_run(
    voice: Voice, outcome: Outcome, sections: list[Section], cells: int, **more: Any
) -> int:
    """Say what a run did, its notes and its verdict; then as `conclude`."""
    if not outcome.worked:
        voice.say(f"Nothing to do: {outcome.path} is complete.")
    notes = [(label, note) for label in outcome.notes for note in outcome.notes[label]]
    for sentence in group_reasons(notes):
        voice.note(f"Note: {sentence}")
    for sentence in group_reasons(outcome.skipped.items()):
        voice.note(f"Skipped: {sentence}")
    voice.tables(sections)
    return conclude(
        voice,
        outcome.path,
        outcome.failed,
        f"{cells} cells",
        worked=outcome.worked,
        skipped=outcome.skipped,
        notes=outcome.notes,
        **more,
    )


def conclude(
    voice: Voice,
    folder: Path,
    failed: Mapping[str, str] = {},
    total: str = "",
    **more: Any,
) -> int:
    """Print failures, where the results are, and with --json the object; returns the exit status.

    failed: the reason by what failed. total: of how many, such as "12 cells". more: what the object
    holds besides.
    """
    from ..publishing.page import FAILED, failed_reports

    for sentence in group_reasons(failed.items()):
        voice.fail(f"Failed: {sentence}")
    if voice.as_json:
        print_json({**summary_of(folder), "failed": failed, **more})

    reports = folder / "reports"
    figures = reports / "figures"
    voice.always(f"Tables:  {reports / 'tables'}")
    if any(figures.glob("*")):
        voice.always(f"Figures: {figures}")
    voice.always(f"Page:    {reports / 'index.html'}")

    if failed and total:
        voice.fail(
            f"{len(failed)} of {total} failed (see {folder / 'failed'} and {folder / 'logs'}). "
            "The same command tries them again; first change what the errors name."
        )
    # A report that fails loses no result of a cell, and still the command has failed.
    broken = failed_reports(folder)
    for name, error in broken.items():
        voice.fail(f"Failed: report {name}: {error} (traceback: {reports / FAILED})")
    return 1 if broken or failed else 0


def group_reasons(reasons: Iterable[tuple[str, str]]) -> Iterator[str]:
    """One line a reason, with the first that has it: many cells have the same one."""
    by_reason: dict[str, list[str]] = {}
    for label, reason in reasons:
        by_reason.setdefault(reason, []).append(label)
    for reason, labels in by_reason.items():
        more = f" and {len(labels) - 1} more" if len(labels) > 1 else ""
        yield f"{labels[0]}{more}: {reason}"
