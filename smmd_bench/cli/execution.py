"""What `train-eval` and `run` share: plan, run, report, summary, exit status."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

from ..experiment.file import ExperimentFile
from .interruption import keeping
from .planning import check_folder, kept, say_plan, say_recipe
from .voice import Voice, published, try_again


def execute(
    plan: ExperimentFile,
    out: Path | None,
    *,
    executor: str,
    extend: bool,
    dry_run: bool,
    track: str | None = None,
    voice: Voice,
) -> int:
    """Run the experiments of one folder and print its tables; returns the exit status."""
    from ..models.cards import without_weights
    from ..plugin_system.registry import load
    from ..run.run_directory import RunDirectory
    from ..training.tracking import require_tracker

    folder = out or Path("runs") / plan.folder_name
    load("executors", executor)
    require_tracker(track)
    check_folder(folder)
    with without_weights() if dry_run else nullcontext():
        plan, left_out = plan.that_can_run()  # what is missing is found before anything is said
        cells = plan.cells
        say_recipe(voice, cells)
        for tasks, reason in left_out.items():
            voice.note(f"Left out, as it is optional: {tasks}: {reason}")
        if dry_run:
            say_plan(voice, RunDirectory(folder), cells)
            return 0
    with keeping(lambda: kept(RunDirectory(folder), cells)):
        from ..publishing.run import is_published
        from ..run.pipeline import run_file

        outcome = run_file(
            plan, folder, voice.progress, executor=executor, extend=extend, track=track
        )
        if not is_published(folder):
            voice.publish(folder)
    if not outcome.worked:
        voice.say(f"Nothing to do: {folder} is complete.")
    voice.tables(folder)
    for label, sentences in outcome.notes.items():
        for sentence in sentences:
            voice.note(f"Note: {label}: {sentence}")
    for label, reason in outcome.skipped.items():
        voice.note(f"Skipped: {label}: {reason}")
    for tasks, reason in left_out.items():
        voice.note(f"Left out: {tasks}: {reason}")
    for label, reason in outcome.failed.items():
        voice.fail(f"Failed: {label}: {reason}")
    if voice.as_json:
        reasons = {"failed": outcome.failed, "skipped": outcome.skipped, "notes": outcome.notes}
        reasons["left_out"] = left_out
        voice.result({**published(folder), "worked": outcome.worked, **reasons})
    voice.paths(folder)
    if track is not None:
        voice.say(f"Tracked: {folder / 'tracking'} ({track})")
    broken = voice.failed_reports(folder)
    if outcome.failed:
        run = RunDirectory(folder)
        failures = [run.failure(cell) for cell in cells if cell.label in outcome.failed]
        voice.fail(
            f"{len(outcome.failed)} of {len(cells)} cells failed; tracebacks are in "
            f"{folder / 'cells'}/*/FAILED.json. {try_again(failures)}"
        )
        return 1
    return 1 if broken else 0
