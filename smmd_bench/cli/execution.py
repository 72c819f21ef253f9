"""What `train-eval` and `run` share: plan, run, report, summary, exit status."""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from ..contracts import Executor
from ..contracts.executor import STALL
from ..errors import UserError
from ..experiment.file import ExperimentFile
from ..plugin_system.registry import load
from ..run.run_directory import RunDirectory
from .outcome import conclude_run, publish_reports
from .plan import present_dry_run, present_plan
from .voice import Voice


def execute(
    plan: ExperimentFile,
    voice: Voice,
    *,
    out: Path | None,
    dry_run: bool,
    measure: bool,
    track: str,
    **how: Any,
) -> int:
    """Run the experiments of one folder, with `how` of `run_file`; returns the exit status."""
    from ..training.tracking import require_tracker

    if how["extend"] and out is None and plan.name is None:
        raise UserError(
            "--extend adds to the folder of another experiment, and without --out this one has a "
            "folder of its own: write --out runs/NAME --extend."
        )
    if measure and not dry_run:
        raise UserError("--measure belongs to a plan: write --dry-run --measure.")
    os.environ[STALL] = str(how.pop("stall"))  # which the processes of jobs read
    folder = out or Path("runs") / plan.folder_name
    run = RunDirectory(folder, how.pop("restore"))
    runner: Executor = load("executors", how["executor"])
    tracker = None if track == "none" else track
    require_tracker(tracker)

    if dry_run:
        return present_dry_run(
            plan, voice, run, runner, measure=measure, extend=how["extend"]
        )
    # A folder that is in use says so before a plan is made, and a plan that is refused makes none.
    with run.locked() if folder.exists() else nullcontext():
        plan, left_out = plan.drop_missing()
        missing = run.missing(plan.cells)
        present_plan(voice, plan.cells, missing, left_out, run)

        # It imports pandas, which an unknown name need not wait for.
        from ..run.pipeline import run_file

        outcome = run_file(plan, run, missing, voice.progress, track=tracker, **how)
    sections = publish_reports(voice, folder)

    if tracker is not None:
        voice.say(f"Tracked: {folder / 'tracking'} ({tracker})")
    return conclude_run(voice, outcome, sections, len(plan.cells), left_out=left_out)
