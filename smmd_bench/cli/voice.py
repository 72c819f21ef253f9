"""What commands say, and where: in colour on a terminal, as plain lines elsewhere.

            standard output                   standard error
people      sentences, progress, tables,      notes, failures
            where the results are
--quiet     where the results are             failures
--json      one JSON object                   progress, notes, failures (with --quiet: failures)
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from ..contracts import Progress
    from ..publishing.page import Section


@dataclass(frozen=True)
class Voice:
    """Says what a command has to say, as its `--quiet` and `--json` ask for."""

    quiet: bool = False
    as_json: bool = False

    def say(self, sentence: str) -> None:
        """Tell people what the command does next, or has done."""
        if not (self.quiet or self.as_json):
            print_sentence(sentence)

    def always(self, line: str) -> None:
        """Print where a result is, also with --quiet."""
        if not self.as_json:
            click.echo(line)

    def note(self, sentence: str) -> None:
        """Say what people should know about a result."""
        if not self.quiet:
            self.fail(sentence)

    def fail(self, sentence: str) -> None:
        """Say what went wrong."""
        print_sentence(sentence, stderr=True)

    @contextmanager
    def progress(self, *, stderr: bool = False) -> Iterator[Progress]:
        """Yield `progress(what, done, total)`; `stderr` if the output is for other programs."""
        if self.quiet:
            yield lambda what, done, total: None
            return
        # A quiet command need not wait until rich is imported.
        from .progress import show_progress

        with show_progress(new_console(stderr=stderr or self.as_json)) as progress:
            yield progress

    def tables(
        self, sections: Sequence[Section], names: Collection[str] | None = None
    ) -> None:
        """Print the first table, that of the verdict, or those of the reports of these names."""
        if self.quiet or self.as_json:
            return
        tables = [section for section in sections if section.table is not None]
        if names is None:
            chosen = tables[:1]
        else:
            chosen = [section for section in tables if section.name in names]
        for section in chosen:
            assert section.table is not None
            file = section.file(".csv")
            place = "" if file is None else str(file)
            print_results(section.table, section.title, section.caption, place)


def new_console(*, stderr: bool = False) -> Console:
    """A console as wide as the terminal or `$COLUMNS`, else 80; NO_COLOR turns colours off."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, markup=False, emoji=False)


def print_sentence(text: str, *, stderr: bool = False) -> None:
    """Print a sentence: wrapped between words on a terminal, one line elsewhere."""
    console = new_console(stderr=stderr)
    console.print(text, soft_wrap=not console.is_terminal)


def print_json(content: Any) -> None:
    """Print an object for machines."""
    click.echo(json.dumps(content, indent=1, ensure_ascii=False))


def print_results(
    table: pd.DataFrame, title: str, caption: str = "", place: str = ""
) -> None:
    """Print a table as wide as the terminal or `$COLUMNS`, at least 80; 100 without them.

    place: what has the columns that do not fit.
    """
    from ..publishing.terminal import to_terminal

    console = new_console()
    is_known = console.is_terminal or "COLUMNS" in os.environ
    # A pipe has no width to be measured.
    console.width = max(80, console.width) if is_known else 100
    # rich fills every line with blanks, which files and diffs should not hold.
    with console.capture() as captured:
        console.print(to_terminal(table, title, caption, console.width, place))
    for line in captured.get().splitlines():
        click.echo(line.rstrip())


def summary_of(folder: Path) -> dict[str, Any]:
    """What machines read about a run: folder, files, metrics, comparisons and verdict."""
    from ..results.frames import read_run

    run, reports = read_run(folder), folder / "reports"
    return {
        "run": str(folder),
        "page": str(reports / "index.html"),
        "tables": [str(file) for file in sorted((reports / "tables").glob("*.csv"))],
        "figures": [str(file) for file in sorted((reports / "figures").glob("*.png"))],
        "metrics": rows_of(run.metrics),
        "comparisons": rows_of(run.comparisons),
        "verdict": rows_of(run.verdict),
    }


def rows_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame for JSON: missing and non-finite values become null."""
    # JSON knows neither infinity nor NaN, and a column of floats cannot hold None.
    finite = frame.replace([float("inf"), float("-inf")], float("nan"))
    rows: list[Any] = (
        finite.astype(object).where(finite.notna(), None).to_dict("records")
    )
    return rows
