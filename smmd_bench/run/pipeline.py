"""From experiments to a finished run: train, select, decode, measure, compare.

`train`, `decode`, `measure` and `compare` are the stages one by one, for a pipeline by hand;
`run_file` does what is missing of them, in the processes of an executor.

Killed at any point, the same call later does only what is missing: what a stage has made is there
whole, under the name of everything that it was made from, or not at all.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..contracts import Executor, Progress
from ..errors import UserError
from ..experiment.cell import Cell
from ..experiment.file import ExperimentFile
from ..plugin_system.registry import load
from ..results.frames import read_run
from ..storage.cell import stored_cell
from .cell_json import cell_from_json
from .comparison import measure_cells, write_comparisons
from .needs import Lengths
from .plan_progress import PlanProgress
from .preflight import preflight
from .run_directory import RunDirectory, Stage
from .schedule import Missing, Schedule

# A plan answers at once: a large generated split would take minutes to make.
LOOKED_AT = 1000


@dataclass
class Outcome:
    """What a call did: `worked` tells whether anything was missing; cells that failed, or were
    skipped because their loss cannot apply, with the reason; what training noted of each."""

    path: Path
    worked: bool = False
    failed: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    notes: dict[str, list[str]] = field(default_factory=dict)


def train(cell: Cell, run: Path) -> None:
    """Train a cell, or read the canary of the untuned base, in this process."""
    from ..training.stage import train_cell

    train_cell(cell, run, lambda *_: None)


def decode(cells: Sequence[Cell], run: Path) -> None:
    """Select an epoch of each of these trained cells of one base and decode the test split with it,
    in one start of the engine. Raises the first error of a cell, after the others are decoded."""
    from ..decoding.stage import decode_cells

    for error in decode_cells(cells, run, lambda *_: None).values():
        raise error


def measure(cells: Sequence[Cell], run: Path) -> None:
    """Score the completions of these cells. Raises the first error of a task's own code."""
    for error in measure_cells(cells, run, lambda *_: None).values():
        raise error


def compare(run: Path) -> bool:
    """Compare each loss with cross-entropy of its seed; returns whether anything was missing. The
    manifest then names the folders of every cell."""
    was_missing = write_comparisons(read_run(run))
    RunDirectory(run).record_folders()
    return was_missing


def run_file(
    plan: ExperimentFile,
    run: RunDirectory,
    missing: Missing,
    display: Callable[[], AbstractContextManager[Progress]],
    *,
    executor: str = "local",
    extend: bool = False,
    track: str | None = None,
) -> Outcome:
    """Do what is missing of a file's experiments in the folder of a run.

    display: opens what shows the progress. track: see `smmd_bench.training.tracking`. Raises
    UserError for the user's mistakes, in any of the experiments, before anything is written; a cell
    that fails is in the outcome.
    """
    out = run.path
    outcome = Outcome(out)
    runner: Executor = load("executors", executor)
    with run.locked():
        run.require_own(plan.experiments, extend=extend)

        # Nothing is written before every mistake that can be foreseen is found.
        with display() as progress:
            work, lengths = check(run, missing, runner, progress, None)

        # The manifest first: it says which earlier cells are to be measured anew.
        run.claim(plan.experiments, plan.name)
        decoded_before = [*_find_unmeasured(run, plan.cells)]

        outcome.worked = bool(work)
        for cell in decoded_before:
            outcome.worked |= not run.failure(cell).get("skipped")
        if outcome.worked:
            with display() as progress:
                # train, select, decode, measure
                cells = [*plan.cells, *decoded_before]
                schedule = Schedule(run, cells, runner.slots, track)
                whole = PlanProgress(schedule, plan.cells, progress, lengths)
                for result in runner.run(schedule, out, whole):
                    whole.end(result)

        outcome.worked |= write_comparisons(read_run(out))
        # Where nothing was done, `claim` has named all folders.
        if outcome.worked:
            run.record_folders()

    for cell in plan.cells:
        notes = run.notes(cell)
        if notes:
            outcome.notes[cell.label] = notes

        failure = run.failure(cell)
        if failure:
            reasons = outcome.skipped if failure.get("skipped") else outcome.failed
            reasons[cell.label] = f"{failure['stage']}: {failure['error']}"

    return outcome


def check_file(
    run: RunDirectory,
    plan: ExperimentFile,
    missing: Mapping[Cell, Stage],
    runner: Executor,
    progress: Progress,
    *,
    extend: bool,
) -> tuple[Missing, Lengths]:
    """Find what of `missing` would be worked on. Raises UserError for what `run_file` would refuse;
    nothing is written, and of examples that are generated, the first `LOOKED_AT` of a split stand
    for all."""
    run.require_place()
    run.require_own(plan.experiments, extend=extend)
    return check(run, missing, runner, progress, LOOKED_AT)


def check(
    run: RunDirectory,
    missing: Mapping[Cell, Stage],
    runner: Executor,
    progress: Progress,
    most: int | None,
) -> tuple[Missing, Lengths]:
    """Find the user's mistakes in the cells that are not decoded yet; returns what of `missing` is
    work, and how long its examples are. most: how many generated examples of a split are checked
    (None: all)."""
    # A loss that cannot apply is no work, however often it is asked for.
    work = {}
    for cell, stage in missing.items():
        failure = run.failure(cell)
        if not failure.get("skipped"):
            work[cell] = stage

    undecoded = [cell for cell, stage in work.items() if stage != "measure"]
    if most is not None:
        undecoded = [_with_fewer(cell, most) for cell in undecoded]
    # The checks import torch, which a finished run need not wait for.
    if undecoded:
        gpus = getattr(runner, "gpus_per_cell", 1)
        return work, preflight(undecoded, progress, gpus)
    return work, {}


def _with_fewer(cell: Cell, most: int) -> Cell:
    """Shorten a cell to at most so many examples of each split whose examples are generated."""
    # A copy of data is read anyhow; only what is generated takes time by its number.
    generated = [split for split in cell.splits if cell.rows_there(split, 1) is None]
    sizes = {f"{split}_examples": min(most, cell.size(split)) for split in generated}
    return replace(cell, recipe=cell.recipe.changed(sizes))


def _find_unmeasured(run: RunDirectory, planned: Collection[Cell]) -> Iterator[Cell]:
    """Find the cells of the folder's other experiments that are decoded and not measured yet."""
    addresses = {cell.address for cell in planned}
    for record in run.manifest["cells"]:
        stored = stored_cell(run.path, record)
        if (
            record["address"] in addresses
            or not stored.is_decoded
            or stored.metrics is not None
        ):
            continue
        with suppress(UserError):  # its plugin or model is gone
            cell = cell_from_json(record)
            # A changed plugin makes another cell, which nobody has asked for.
            if cell.parts == record["parts"]:
                yield cell
