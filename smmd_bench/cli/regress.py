"""`smmd-bench regress RUN`: what a run's checkpoints can still do besides numbers."""

from __future__ import annotations

from pathlib import Path

import click

from . import completion, options


@click.command()
@click.argument("run", type=click.Path(path_type=Path), shell_complete=completion.runs)
@click.option(
    "--suite",
    "suites",
    default="mmlu",
    show_default=True,
    metavar="SUITE,...",
    help="mmlu, samsum, or any task or group of lm-eval, such as gsm8k,hellaswag.",
)
@click.option(
    "--checkpoint",
    "checkpoints",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Also this folder: a full checkpoint, or an adapter on the run's model; may be repeated.",
)
@click.option(
    "--losses",
    default="",
    metavar="LOSS,...",
    shell_complete=completion.run_losses,
    help="Only the cells of these losses; base is the untuned model (default: all).",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=None,
    help="A quick look: the first N questions of each subject or task.",
)
@click.option(
    "--shots",
    type=click.IntRange(min=0),
    default=None,
    help="Examples before each question (default: 5 for mmlu, else the task's own).",
)
@click.option(
    "--engine",
    type=click.Choice(["auto", "hf", "vllm"]),
    default="auto",
    show_default=True,
    help="auto: vllm on a GPU, hf (transformers) on a CPU.",
)
@click.option("--batch-size", type=click.IntRange(min=1), default=None, help="Prompts at a time.")
@options.executor
@options.quiet
@options.as_json
@options.data_dir
@options.plugin
def command(
    run: Path,
    suites: str,
    checkpoints: tuple[Path, ...],
    losses: str,
    limit: int | None,
    shots: int | None,
    engine: str,
    batch_size: int | None,
    executor: str,
    quiet: bool,
    as_json: bool,
    plugins: tuple[Path, ...],
) -> int:
    """Run lm-eval on the base and every loss's selected checkpoint of the folder RUN.

    What the run has already is not evaluated again. Tables and page are made anew at the end.

    \b
    Examples:
      smmd-bench regress runs/NAME --suite mmlu,samsum
      smmd-bench regress runs/NAME --suite mmlu --limit 10 --data-dir DIR
      smmd-bench regress runs/NAME --suite samsum --losses ce --checkpoint ./other
    """
    from ..plugin_system.registry import load_plugin_file

    for file in plugins:
        load_plugin_file(file)
    from ..plugin_system.parameters import split_list
    from ..publishing.report_stamp import reports_are_current
    from ..regression.evaluation import plan
    from ..regression.find_suites import find_suites, shots_notes
    from ..regression.find_targets import find_targets
    from ..regression.regress import find_setting, regress
    from ..storage.files import read_json
    from .interruption import keeping
    from .voice import Voice, published, try_again

    voice = Voice(quiet, as_json)
    targets, notes = find_targets(run, split_list(losses), checkpoints)
    found = find_suites(split_list(suites), shots)
    setting = find_setting(engine, limit, batch_size, targets)
    for note in [*notes, *shots_notes(found, shots)]:
        voice.note(f"Note: {note}")
    voice.say(
        f"{len(targets)} checkpoints x {', '.join(suite.name for suite in found)} with "
        f"{setting.engine}" + (f", {limit} questions a subject or task." if limit else ".")
    )

    def kept() -> list[str]:
        evaluations = plan(targets, found, setting)
        done = sum(evaluation.is_done(run) for evaluation in evaluations)
        return [f"Kept in {run / 'regression'}: {done} of {len(evaluations)} evaluations."]

    with keeping(kept):
        with voice.progress() as progress:
            outcome = regress(run, targets, found, setting, progress, executor=executor)
        if not reports_are_current(run):
            voice.publish(run)
    if not outcome.worked:
        voice.say("Nothing to do: all of it was evaluated before.")
    voice.tables(run, ("mmlu_table", "regression_table"))
    for label, reason in outcome.failed.items():
        voice.fail(f"Failed: {label}: {reason}")
    if as_json:
        reasons = {"worked": outcome.worked, "failed": outcome.failed}
        voice.result({**published(run), **reasons})
    voice.paths(run)
    if outcome.failed:
        failures = [
            read_json(e.folder(run) / "FAILED.json")
            for e in plan(targets, found, setting)
            if not e.is_done(run)
        ]
        voice.fail(
            f"{len(outcome.failed)} evaluations failed; tracebacks are in "
            f"{run / 'regression'}/*/FAILED.json. {try_again(failures)}"
        )
        return 1
    return 0
