"""`smmd-bench regress RUN`: what a run's checkpoints can still do besides numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from . import options
from .outcome import conclude, publish_reports
from .voice import Voice


@click.command()
@click.argument("run", type=options.PATH)
@options.commas(
    "--suite", "suites", word="SUITE", default="mmlu",
    help="What to evaluate: mmlu, samsum, or any task or group of lm-eval, as gsm8k,hellaswag.",
)  # fmt: skip
@options.commas(
    "--losses",
    word="LOSS",
    default="",
    show_default=False,
    help="Only the checkpoints of these losses, such as base,smmd (default: all).",
)
@options.number("--limit", 1, "Only the first N questions of each subject or task.")
@options.number(
    "--shots", 0, "Solved examples before each question (default: the suite's)."
)
@options.choice(
    "--engine",
    "auto",
    "transformers",
    "vllm",
    help="What answers; auto: vllm on a GPU, transformers on a CPU.",
)
@options.number(
    "--batch-size", 1, "Prompts at a time (default: 1, with vLLM as many as fit)."
)
@options.executor
@options.voice
@options.data_dir
@options.plugin
def command(
    run: Path,
    suites: list[str],
    losses: list[str],
    limit: int | None,
    shots: int | None,
    engine: str,
    voice: Voice,
    **how: Any,
) -> int:
    """Run lm-eval on a run's checkpoints: MMLU, SAMSum, any task.

    It does what the folder RUN lacks: the base, and the selected checkpoint of every loss.

    \b
    Examples:
      smmd-bench regress runs/NAME --suite mmlu --limit 10 --data-dir ./data
    """
    from ..regression.evaluation import find_targets, plan, regress
    from ..regression.suites import find_suites

    targets, notes = find_targets(run, losses)
    chosen_suites = find_suites(suites, shots)
    wanted = plan(targets, chosen_suites, engine, limit)
    # Notes come before hours of work, while something can still be changed.
    for note in notes:
        voice.note(f"Note: {note}")
    names = ", ".join(suite.name for suite in chosen_suites)
    voice.say(f"{len(targets)} checkpoints x {names} with {wanted[0].facts['engine']}.")

    with voice.progress() as progress:
        outcome = regress(run, wanted, progress, **how)
    sections = publish_reports(voice, run)
    if not outcome.worked:
        voice.say("Nothing to do: the run has every result.")
    voice.tables(sections, ("mmlu_table", "regression_table"))
    return conclude(
        voice, run, outcome.failed, f"{len(wanted)} evaluations", worked=outcome.worked
    )
