"""What a long command says, and where: to people, to people who want to hear little, to machines.

            standard output                   standard error
people      sentences, progress, tables,      notes, failures
            where the results are
--quiet     where the results are             failures
--json      one JSON object                   progress, notes, failures (with --quiet: failures)
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .terminal import new_console, new_table, print_sentence, print_table, result_width

if TYPE_CHECKING:
    import pandas as pd

    from ..contracts import Progress


@dataclass(frozen=True)
class Voice:
    """Says what a command has to say in the manner of its `--quiet` and `--json`."""

    quiet: bool = False
    as_json: bool = False

    def say(self, sentence: str) -> None:
        """What a command is about to do, or has done."""
        if not (self.quiet or self.as_json):
            print_sentence(sentence)

    def always(self, line: str) -> None:
        """Where a result is: also with --quiet."""
        if not self.as_json:
            click.echo(line)

    def rows(self, rows: Iterable[Sequence[str]]) -> None:
        """A table of what a command is about to do; the last column is broken where it must be."""
        if not (self.quiet or self.as_json):
            from rich.text import Text

            console, table = new_console(), new_table(show_header=False)
            for row in rows:
                table.add_row(*(Text(cell, overflow="fold") for cell in row))
            print_table(console, table)

    def note(self, sentence: str) -> None:
        """What people should know of a result."""
        if not self.quiet:
            print_sentence(sentence, stderr=True)

    def fail(self, sentence: str) -> None:
        """What went wrong."""
        print_sentence(sentence, stderr=True)

    @contextmanager
    def progress(self, *, stderr: bool = False) -> Iterator[Progress]:
        """Yield `progress(what, done, total)`; `stderr`: where the output is for other programs."""
        if self.quiet:
            yield lambda what, done, total: None
            return
        from ..run.progress import shown

        with shown(new_console(stderr=stderr or self.as_json)) as progress:
            yield progress

    def publish(self, folder: Path) -> list[Path]:
        """Make tables, figures and page of a run; returns their files."""
        from ..publishing.write_reports import write_reports

        with self.progress() as progress:
            return write_reports(folder, progress)

    @contextmanager
    def waiting(self, text: str) -> Iterator[None]:
        """Inside, a terminal shows that something goes on."""
        if self.quiet:
            yield
            return
        with new_console(stderr=True).status(text):
            yield

    def tables(self, folder: Path, names: Collection[str] | None = None) -> None:
        """The tables of a run (or of these reports) as they were published, for this terminal."""
        if self.quiet or self.as_json:
            return
        from ..publishing.terminal import read_terminal_tables

        click.echo(read_terminal_tables(folder, result_width(), names))

    def paths(self, folder: Path) -> None:
        """Where tables, figures and page of a run are."""
        if not self.as_json:
            click.echo(f"Tables:  {folder / 'reports' / 'tables'}")
            if any((folder / "reports" / "figures").glob("*")):
                click.echo(f"Figures: {folder / 'reports' / 'figures'}")
            click.echo(f"Page:    {folder / 'reports' / 'index.html'}")

    def failed_reports(self, folder: Path) -> bool:
        """Say which reports of a run failed; whether any did."""
        from ..publishing.page import FAILED, failed_reports

        failed = failed_reports(folder)
        for name, error in failed.items():
            self.fail(f"Failed: report {name}: {error} (traceback: {folder / 'reports' / FAILED})")
        return bool(failed)

    def result(self, content: Mapping[str, Any]) -> None:
        """The one JSON object."""
        if self.as_json:
            click.echo(json.dumps(content, indent=1, ensure_ascii=False))


def try_again(failures: Iterable[Mapping[str, Any] | None]) -> str:
    """Whether the same command can help, by the FAILED.json of cells (None: it has not failed): a
    mistake of the user's stays one until what the error names is changed."""
    found = [f for f in failures if f is not None and not f.get("skipped")]
    mistakes = sum(bool(f.get("user_error")) for f in found)
    if not mistakes:
        return "The same command tries them again."
    if mistakes == len(found):
        return "The same command fails again: first change what the errors name."
    return (
        f"The same command tries them again; {mistakes} of them fail again until what their errors "
        "name is changed."
    )


def published(folder: Path) -> dict[str, Any]:
    """What machines are told of a run with reports: its folder, files, metrics and comparisons."""
    from ..results.frames import read_run

    run, reports = read_run(folder), folder / "reports"
    return {
        "run": str(folder),
        "page": str(reports / "index.html"),
        "tables": [str(file) for file in sorted((reports / "tables").glob("*.csv"))],
        "figures": [str(file) for file in sorted((reports / "figures").glob("*.png"))],
        "metrics": _rows(run.metrics),
        "comparisons": _comparisons(run.comparisons),
    }


def _comparisons(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The comparisons; McNemar's test of exact match stands in the rows of exact match alone."""
    tested = frame["metric"] == "exact_match"
    kept = frame.copy()
    kept[["b", "c", "p"]] = kept[["b", "c", "p"]].astype("float64").where(tested, axis=0)
    return _rows(kept)


def _rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame for JSON: what is missing, or not finite, is null."""
    return [
        {
            str(name): None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in row.items()
        }
        for row in frame.astype(object).where(frame.notna(), None).to_dict("records")
    ]
