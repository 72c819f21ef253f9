"""Trials of engines: without an untuned model among the cells, decoding would be the first to say
that an engine cannot run it, after all training."""

from collections.abc import Mapping, Sequence

from ..contracts import Executor, Job, JobQueue, Progress
from ..errors import UserError
from ..experiment.cell import Cell
from ..plugin_system.registry import plugin_files
from .cell_json import cell_to_json
from .lease import Leases
from .run_directory import RunDirectory, Stage, record_failure
from .schedule import Base, base_of, home_of, resources_of

TRY = "try"
"""The stage of a job that starts an engine on an untuned model, and makes nothing."""


def try_engines(
    run: RunDirectory,
    cells: Sequence[Cell],
    runner: Executor,
    progress: Progress,
    leases: Leases,
) -> set[Cell]:
    """Try the engine of each base that is to be trained on and whose untuned model is no cell.

    Returns the cells whose engine cannot run their model: each has a FAILED.json that says so, as
    if decoding had found it. Those that other processes work on are left to them.
    """
    missing = {cell: run.missing(cell) for cell in cells}
    groups: dict[Base, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(base_of(cell), []).append(cell)
    jobs = {(job := _job(group)).name: (job, group) for group in groups.values()
            if _is_unknown(group, missing)}  # fmt: skip
    failed: set[Cell] = set()
    queue = JobQueue(job for job, _ in jobs.values())
    for result in runner.run(queue, run.path, progress) if jobs else ():
        if result.failure is not None:
            job, group = jobs[result.job.name]
            (first,) = (cell for cell in group if cell.addresses["train"] == job.cells[0])
            said = run.failure(first)
            error = said.get("error", result.failure)
            for cell in group:
                if missing[cell] and leases.holder(home_of(cell)) is None:
                    why = UserError(error) if said.get("user_error") else error
                    record_failure(run.cell_folder(cell), "decode", why)
                    failed.add(cell)
    return failed


def _is_unknown(cells: Sequence[Cell], missing: Mapping[Cell, Sequence[Stage]]) -> bool:
    """Whether something is to be trained, and nothing before that tells that it can be decoded."""
    told = any(cell.is_base or "decode" not in missing[cell] for cell in cells)
    return not told and any("train" in missing[cell] for cell in cells)


def _job(cells: Sequence[Cell]) -> Job:
    """A trial for cells of one base, with one of each task and way of training."""
    tried = [*{(cell.task, cell.recipe.method): cell for cell in cells}.values()]
    return Job(
        stage=TRY,
        label=f"{cells[0].card.label}, untuned",
        cells=tuple(cell.addresses["train"] for cell in tried),
        payload={
            "plugins": [str(file) for file in plugin_files()],
            "cells": [cell_to_json(cell) for cell in tried],
        },
        resources=resources_of(TRY, cells[0]),
        folders=tuple(f"cells/{cell.addresses['train']}" for cell in tried),
    )
