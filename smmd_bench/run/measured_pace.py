"""How long steps and examples take here: measured in a trial, or read from finished trainings."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from ..contracts import Executor, Progress
from ..errors import UserError
from ..experiment.cell import Cell
from ..experiment.provenance import describe_run, describe_stage
from ..models.recipe import recipe_content
from ..results.baselines import REFERENCE
from ..storage.cell import StoredCell, stored_cell
from ..storage.files import read_manifest
from .needs import Lengths, find_trainings, steps_of
from .pace import Pace, work_of
from .plan_progress import PlanProgress
from .run_directory import RunDirectory
from .schedule import Missing, Schedule

# Examples that --measure decodes of a split.
_DECODED = 64
_OF_A_STEP = (
    "method", "batch_size", "micro_batch_size", "lora_rank", "lora_targets", "dtype",
    "gradient_checkpointing", "compile", "attn_implementation",
)  # fmt: skip
"""The settings on which the time of a step depends."""


def measure_pace(
    missing: Missing,
    lengths: Lengths,
    runner: Executor,
    folder: Path,
    progress: Progress,
) -> Pace:
    """Train the longest of these cells for three steps, and decode a few examples with its weights,
    as a run does, in a folder beside `folder` that is removed. Raises UserError where nothing is
    to be trained, and where the cell fails."""
    trained = find_trainings(missing)
    if not trained:
        raise UserError(
            f"Nothing of {folder} is to be trained, so --measure has nothing to measure: leave it "
            "out."
        )

    def length_of(cell: Cell) -> tuple[float, bool]:
        work = work_of(cell, "train", steps_of(cell), lengths)
        # An auxiliary takes time, too.
        return work.units * work.size, cell.loss != REFERENCE

    longest = max(trained, key=length_of)
    few = min(_DECODED, longest.size("validation"), longest.size("test"))
    sizes = {
        "epochs": 1,
        "train_examples": 3 * longest.recipe.batch_size,
        "validation_examples": few,
        "test_examples": few,
    }
    cell = replace(longest, recipe=longest.recipe.changed(sizes), trial=None)

    # On the same disk, which every node of a cluster sees.
    place = RunDirectory(folder.absolute().parent).nearest
    with TemporaryDirectory(prefix=".measure-", dir=place) as name:
        run = RunDirectory(Path(name))
        schedule = Schedule(run, [cell], runner.slots)
        whole = PlanProgress(schedule, [], progress, lengths)
        for result in runner.run(schedule, run.path, whole):
            whole.end(result)
        failure = run.failure(cell)
        if failure:
            raise UserError(
                f"--measure did not work: {cell.label} failed to {failure['stage']}: "
                f"{failure['error']}"
            )
        pace = whole.pace()
        _add_logged(pace, cell, cell.stored(run.path), lengths)
    return pace


def pace_of_receipts(missing: Missing, run: Path, lengths: Lengths) -> Pace:
    """Read the seconds a step from the logs of trainings like those that are missing, made on this
    machine: in this run's folder, and in the runs beside it."""
    pace = Pace()
    like = {(cell.model, cell.task_label): cell for cell in find_trainings(missing)}
    if not like:
        return pace
    hardware = describe_run()["hardware"]
    device = describe_stage("train")["device"]
    for file in sorted(run.absolute().parent.glob("*/manifest.json")):
        try:
            manifest = read_manifest(file.parent)
        except Exception:  # of an older format, or no run's
            continue
        if manifest.get("hardware") != hardware:
            continue

        for record in manifest.get("cells", ()):
            cell = like.get((record["model"], record["task"]))
            if cell is None:
                continue
            theirs, recipe = record["recipe"], recipe_content(cell.recipe)
            if any(theirs.get(key) != recipe.get(key) for key in _OF_A_STEP):
                continue
            # What is read from the disk comes last: beside a run there may be many.
            stored = stored_cell(file.parent, record)
            made_with = (stored.receipt or {}).get("made_with", {})
            if made_with.get("device") == device:
                _add_logged(pace, cell, stored, lengths)
    return pace


def _add_logged(pace: Pace, cell: Cell, stored: StoredCell, lengths: Lengths) -> None:
    """Take in the steps of a training, as its log has them; the first one is slow."""
    import pandas as pd

    log = stored.place("train_log")
    if log is not None and log.is_file():
        seconds = pd.read_parquet(log, columns=["seconds"])["seconds"].iloc[1:]
        if len(seconds):
            pace.add(work_of(cell, "train", len(seconds), lengths), seconds.sum())
