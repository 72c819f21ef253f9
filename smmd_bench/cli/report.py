"""`smmd-bench report RUN ...`: tables, figures and page again, from what is on disk."""

from pathlib import Path

import click

from ..errors import UserError
from . import options
from .terminal import print_json
from .voice import Voice, summary_of


@click.command()
@click.argument("runs", nargs=-1, required=True, type=options.PATH)
@options.commas(
    "--only",
    word="NAME",
    help="Only these reports, by name or by the paper's: arithmetic_table, table2, figure3.",
)
@options.commas(
    "--format",
    "formats",
    word="FORMAT",
    help="Only these formats: csv, markdown, latex, png, pdf, svg.",
)
@click.option(
    "--out",
    type=options.FOLDER,
    help="A folder for one report of several runs (their cells as links, without checkpoints).",
)
@options.voice
@options.plugin
def command(
    runs: tuple[Path, ...],
    only: list[str] | None,
    formats: list[str] | None,
    out: Path | None,
    voice: Voice,
) -> int:
    """Make the tables, figures and page of finished RUNS again.

    Nothing is trained or decoded. Several runs make one report, in a folder of their own.

    \b
    Examples:
      smmd-bench report runs/arithmetic_tiny_ce_ntl_smmd_1a2b3c
      smmd-bench report runs/NAME --only table2,figure3 --format latex,pdf
      smmd-bench report runs/BEFORE runs/AFTER --out runs/both
      smmd-bench report runs/NAME --plugin my_figure.py
    """
    from ..publishing.report_names import require_formats, require_reports
    from ..results.frames import read_run

    if len(runs) > 1 and out is None:
        raise UserError("Several runs need a folder for their report: name one with --out.")
    for one in runs:
        read_run(one)  # or says why it is none
    require_reports(only or ())
    require_formats(formats or ())
    from ..run.merge import merge_runs  # and pandas with it

    run = runs[0] if out is None else merge_runs(runs, out)
    if only is None and formats is None:
        written = voice.publish(run)
        voice.tables(run)
        voice.say(f"{len(written)} files in {run / 'reports'}")
        voice.paths(run)
        broken = voice.failed_reports(run)
    else:
        broken = _publish_some(voice, run, only or [], formats)
    if voice.as_json:
        print_json(summary_of(run))
    return 1 if broken else 0


def _publish_some(voice: Voice, run: Path, only: list[str], formats: list[str] | None) -> bool:
    """Make some reports, or some formats; returns whether a report failed."""
    from ..publishing.report_names import SPELLINGS
    from ..publishing.write_reports import write_some_reports

    asked = list(SPELLINGS) if formats is None else formats
    with voice.progress(stderr=True) as progress:
        sections, written = write_some_reports(
            run, only, [SPELLINGS[name] for name in asked], progress
        )
    for section in sections:
        if section.error:
            voice.fail(f"Failed: report {section.name}: {section.error}")
        elif section.skipped:
            voice.note(f"Not made: {section.name}: {section.skipped}")
        voice.section(section)
    for path in written:
        voice.always(str(path))
    return any(section.error for section in sections)
