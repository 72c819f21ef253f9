"""`smmd-bench score`: tables and figures of completions made elsewhere."""

from pathlib import Path
from typing import Any

import click

from . import options
from .outcome import conclude, publish_reports
from .voice import Voice


@click.command()
@click.option(
    "--task",
    required=True,
    cls=options.PluginOption,
    group="tasks",
    help="The task that was answered, such as 'arithmetic[level=hard]'.",
)
@click.option(
    "--predictions", "files", required=True, multiple=True, type=options.THERE, metavar="FILE",
    help="A file of completions, or lm-eval's output folder; may be repeated: the others are "
    "compared with the first.",
)  # fmt: skip
@click.option(
    "--label",
    "labels",
    multiple=True,
    help="What tables call a file, in the order of --predictions (default: its name).",
)
@options.choice(
    "--split", "test", "train", "validation", help="The split that was answered."
)
@options.data_seed
@options.number("--limit", 1, "Score only the first N examples (default: all).")
@click.option(
    "--partial",
    is_flag=True,
    help="Score the examples that every file has, and leave out the others.",
)
@click.option(
    "--id-column",
    metavar="NAME",
    help="The column with the ids of examples (default: one of a usual name).",
)
@click.option(
    "--completion-column",
    metavar="NAME",
    help="The column with the completions (default: one of a usual name).",
)
@click.option(
    "--keep-reasoning",
    is_flag=True,
    help="Read reasoning in tags, such as <think>, as a part of the answer.",
)
@click.option(
    "--model-label", "model", default="predictions", help="What tables call the model."
)
@options.out()
@options.voice
@options.data_dir
@options.plugin
def command(
    task: str,
    files: tuple[Path, ...],
    labels: tuple[str, ...],
    voice: Voice,
    **given: Any,
) -> int:
    """Score completions made elsewhere, and report as of a run.

    Files are JSON lines, a JSON list, CSV or Parquet with a column for the completion (completion,
    prediction, response, output, generated_text) and one for the id (uid, id, doc_id, index: the
    uid of an example or its position from 0); samples of lm-eval; details of lighteval; logs of
    Inspect; also gzipped. Reasoning in tags such as <think> is no answer.

    \b
    Examples:
      smmd-bench score --task gsm8k --predictions samples_gsm8k_2026-11-20.jsonl
    """
    from ..plugin_system.registry import require_known

    # A mistyped name is answered before what takes a second to import.
    require_known("tasks", [task])
    from ..maintenance.foreign_completions import score_predictions

    outcome = score_predictions(task, files, labels, say=voice.say, **given)
    folder = outcome.path
    sections = publish_reports(voice, folder)
    if not outcome.worked and not outcome.failed:
        voice.say(f"Nothing to do: {folder} is complete.")
    voice.tables(sections)
    return conclude(voice, folder, outcome.failed, worked=outcome.worked)
