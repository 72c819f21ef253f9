"""`smmd-bench report RUN ...`: tables, figures and page again, from what is on disk."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import UserError, did_you_mean
from . import options
from .outcome import conclude, note_old_code, publish_reports
from .voice import Voice, print_json, summary_of

if TYPE_CHECKING:
    from ..publishing.page import Section

_Names = list[str] | None
_ENDINGS = {"csv": "csv", "markdown": "md", "latex": "tex"} | {
    x: x for x in ("png", "svg", "pdf")
}
"""How `--format` spells a format, and the ending of its files."""


@click.command()
@click.argument("runs", nargs=-1, required=True, type=options.PATH)
@options.commas(
    "--only",
    word="NAME",
    help="Make only these reports, such as arithmetic_table,figure3 (default: all).",
)
@options.commas(
    "--format",
    "formats",
    word="FORMAT",
    help=f"Write only these of {', '.join(_ENDINGS)} (default: all).",
)
@options.commas(
    "--columns",
    word="NAME",
    help="Print only these columns of tables, such as 'Loss,Acc (%)' (default: all).",
)
@options.out("The folder for one report of several runs.")
@options.voice
@options.plugin
def command(
    runs: tuple[Path, ...],
    only: _Names,
    formats: _Names,
    columns: _Names,
    out: Path | None,
    voice: Voice,
) -> int:
    """Make the tables, figures and page of finished RUNS again.

    \b
    Examples:
      smmd-bench report runs/PART1 runs/PART2 --out runs/both
    """
    if len(runs) > 1 and out is None:
        raise UserError(
            "Several runs need a folder for their report: name one with --out."
        )
    if columns and not only:
        raise UserError("--columns are those of a table: name it with --only.")
    for name in {*(formats or ())} - {*_ENDINGS}:
        raise UserError(f"Unknown format '{name}': {did_you_mean(name, _ENDINGS)}")
    from ..maintenance.merge import merge_runs
    from ..publishing.write_reports import (
        FORMATS,
        find_reports,
        table_texts,
        write_some_reports,
    )

    names = find_reports(only or ())
    endings = [_ENDINGS[name] for name in formats or ()] or FORMATS
    run = runs[0] if out is None else merge_runs(runs, out)
    # The page holds every report, so that some of them alone leave it as it is.
    if only is None and formats is None:
        voice.tables(publish_reports(voice, run))
        return conclude(voice, run)
    with voice.progress(stderr=True) as progress:
        sections = write_some_reports(run, names, endings, progress, columns or ())
    note_old_code(voice, run)
    _say_problems(voice, sections)

    texts: list[str] = []
    if formats and not (voice.quiet or voice.as_json):
        for section in sections:
            text_of = table_texts(section)
            texts += [text_of[ending] for ending in endings if ending in text_of]

    paths = [str(path) for section in sections for path in section.files]
    # The texts alone go to the standard output, so that a pipe can take them.
    if texts:
        click.echo("\n".join(texts), nl=False)
        voice.note("\n".join(paths))
    else:
        voice.tables(sections, [section.name for section in sections])
        for path in paths:
            voice.always(path)
    if voice.as_json:
        print_json(summary_of(run))
    return 1 if any(section.error for section in sections) else 0


def _say_problems(voice: Voice, sections: Iterable[Section]) -> None:
    for section in sections:
        if section.error:
            voice.fail(f"Failed: report {section.name}: {section.error}")
        elif section.skipped:
            voice.note(f"Not made: {section.name}: {section.skipped}")
