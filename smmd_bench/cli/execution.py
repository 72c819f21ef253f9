"""What `train-eval` and `run` share: plan, run, report, summary, exit status."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

from ..experiment.file import ExperimentFile
from .interruption import keeping
from .planning import check_folder, list_kept, say_plan, say_recipe
from .voice import Voice, advise_retry


def execute(
    plan: ExperimentFile,
    voice: Voice,
    *,
    out: Path | None,
    executor: str,
    extend: bool,
    dry_run: bool,
    track: str,
) -> int:
    """Run the experiments of one folder and print its tables; returns the exit status."""
    from ..models.cards import without_weights
    from ..plugin_system.registry import load
    from ..run.run_directory import RunDirectory
    from ..training.tracking import require_tracker

    folder = out or Path("runs") / plan.folder_name
    tracker = None if track == "none" else track
    load("executors", executor)
    require_tracker(tracker)
    check_folder(folder)
    with without_weights() if dry_run else nullcontext():
        plan, left_out = plan.that_can_run()  # finds what is missing before anything is said
        cells = plan.cells
        say_recipe(voice, cells)
        for tasks, reason in left_out.items():
            voice.note(f"Left out, as it is optional: {tasks}: {reason}")
        if dry_run:
            say_plan(voice, RunDirectory(folder), cells)
            return 0
    with keeping(lambda: list_kept(RunDirectory(folder), cells)):
        from ..publishing.report_stamp import reports_are_current
        from ..run.pipeline import run_file

        outcome = run_file(
            plan, folder, voice.progress, executor=executor, extend=extend, track=tracker
        )
        if not reports_are_current(folder):
            voice.publish(folder)
    if not outcome.worked:
        voice.say(f"Nothing to do: {folder} is complete.")
    voice.tables(folder)
    notes = [(f"Note: {at}", said) for at, all_said in outcome.notes.items() for said in all_said]
    notes += [(f"Skipped: {label}", reason) for label, reason in outcome.skipped.items()]
    notes += [(f"Left out: {tasks}", reason) for tasks, reason in left_out.items()]
    for what, sentence in notes:
        voice.note(f"{what}: {sentence}")
    more = {"skipped": outcome.skipped, "notes": outcome.notes, "left_out": left_out}
    voice.conclude(folder, worked=outcome.worked, failed=outcome.failed, **more)
    if tracker is not None:
        voice.say(f"Tracked: {folder / 'tracking'} ({tracker})")
    broken = voice.failed_reports(folder)
    if outcome.failed:
        run = RunDirectory(folder)
        failures = [run.failure(cell) for cell in cells if cell.label in outcome.failed]
        voice.fail(
            f"{len(outcome.failed)} of {len(cells)} cells failed; tracebacks are in "
            f"{folder / 'cells'}/*/FAILED.json. {advise_retry(failures)}"
        )
    return 1 if outcome.failed or broken else 0
