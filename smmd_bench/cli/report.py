"""`smmd-bench report RUN ...`: tables, figures and page again, from what is on disk."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from . import completion, options

if TYPE_CHECKING:
    from .voice import Voice


@click.command()
@click.argument(
    "runs", nargs=-1, required=True, type=click.Path(path_type=Path), shell_complete=completion.runs
)
@click.option(
    "--only",
    metavar="NAME,...",
    help="Some reports alone, by name or by the paper's: arithmetic_table, table2, figure3.",
)
@click.option(
    "--format",
    "formats",
    metavar="FORMAT,...",
    help="Some formats alone: csv, markdown, latex, png, pdf.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Where several runs are put together (their cells as links, without checkpoints).",
)
@options.quiet
@options.as_json
@options.plugin
def command(
    runs: tuple[Path, ...],
    only: str | None,
    formats: str | None,
    out: Path | None,
    quiet: bool,
    as_json: bool,
    plugins: tuple[Path, ...],
) -> int:
    """Make the tables, figures and page of finished RUNS again; nothing is trained or decoded.

    Several runs make one report, in a folder of their own.

    \b
    Examples:
      smmd-bench report runs/arithmetic_tiny_ce_ntl_smmd_1a2b3c
      smmd-bench report runs/NAME --only table2,figure3 --format latex,pdf
      smmd-bench report runs/BEFORE runs/AFTER --out runs/both
      smmd-bench report runs/NAME --plugin my_figure.py
    """
    from ..plugin_system.registry import load_plugin_file
    from .run_plugins import load_plugins_of
    from .voice import Voice, published

    for file in plugins:
        load_plugin_file(file)
    voice = Voice(quiet, as_json)
    load_plugins_of(runs, voice)
    run = _one_run(runs, out)
    if only is None and formats is None:
        broken = _make_all(voice, run)
    else:
        broken = _make_some(voice, run, only, formats)
    if as_json:
        voice.result(published(run))
    return 1 if broken else 0


def _one_run(runs: tuple[Path, ...], out: Path | None) -> Path:
    from ..errors import UserError

    if len(runs) == 1 and out is None:
        return runs[0]
    if out is None:
        raise UserError("Several runs need a folder for their report: name one with --out.")
    from ..run.merge import merge_runs

    return merge_runs(runs, out)


def _make_all(voice: Voice, run: Path) -> bool:
    from .interruption import keeping

    with keeping(tuple):
        written = voice.publish(run)
    voice.tables(run)
    voice.say(f"{len(written)} files in {run / 'reports'}")
    voice.paths(run)
    return voice.failed_reports(run)


def _make_some(voice: Voice, run: Path, only: str | None, formats: str | None) -> bool:
    from ..errors import UserError, did_you_mean
    from ..plugin_system.parameters import split_list
    from ..publishing.report_stamp import reports_are_stale
    from ..publishing.write_reports import SPELLINGS, write_some_reports
    from .interruption import keeping

    asked = list(SPELLINGS) if formats is None else split_list(formats)
    for name in asked:
        if name not in SPELLINGS:
            raise UserError(f"Unknown format '{name}': {did_you_mean(name, SPELLINGS)}")
    endings = [SPELLINGS[name] for name in asked]
    stale = reports_are_stale(run)
    with keeping(tuple), voice.progress(stderr=True) as progress:
        sections, written = write_some_reports(run, split_list(only or ""), endings, progress)
    for section in sections:
        if section.error:
            voice.fail(f"Failed: report {section.name}: {section.error}")
        elif section.skipped:
            voice.note(f"Not made: {section.name}: {section.skipped}")
    for path in written:
        voice.always(str(path))
    if stale:
        voice.note(
            f"Note: the other tables and figures in {run / 'reports'} are of an earlier state of "
            "the run: `smmd-bench report` without --only and --format makes them again."
        )
    return any(section.error for section in sections)
