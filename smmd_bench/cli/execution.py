"""What `train-eval` and `run` share: plan, run, report, summary, exit status."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, get_args

from rich.filesize import decimal

from ..contracts import Executor, Split
from ..contracts.executor import STALL
from ..errors import UserError
from ..experiment.cell import Cell
from ..experiment.file import ExperimentFile
from ..plugin_system.checked_task import notes_of
from ..plugin_system.registry import load
from ..results.baselines import REFERENCE
from ..run.run_directory import JOB_STAGES, RunDirectory, Stage
from ..scoring.deciding import selecting_metrics
from .outcome import conclude, publish_reports
from .voice import Voice, print_json


def execute(
    plan: ExperimentFile,
    voice: Voice,
    *,
    out: Path | None,
    dry_run: bool,
    track: str,
    **how: Any,
) -> int:
    """Run the experiments of one folder, with `how` of `run_file`; returns the exit status."""
    from ..models.cards import without_weights
    from ..training.tracking import require_tracker

    if how["extend"] and out is None and plan.name is None:
        raise UserError(
            "--extend adds to the folder of another experiment, and without --out this one has a "
            "folder of its own: write --out runs/NAME --extend."
        )
    os.environ[STALL] = str(how.pop("stall"))  # which the processes of jobs read
    folder = out or Path("runs") / plan.folder_name
    run = RunDirectory(folder, how["restore"])
    runner: Executor = load("executors", how["executor"])
    tracker = None if track == "none" else track
    require_tracker(tracker)

    # A plan needs no weights of the hub: its cards say how large they are.
    with without_weights() if dry_run else nullcontext():
        plan, left_out = _present_plan(voice, plan, run)
        if dry_run:
            from ..run.pipeline import check_file

            with voice.progress(stderr=True) as progress:
                missing = check_file(run, plan, runner, progress, extend=how["extend"])
            _say_work(voice, run, plan.cells, missing, runner)
            return 0

    from ..run.pipeline import run_file

    outcome = run_file(plan, folder, voice.progress, track=tracker, **how)
    sections = publish_reports(voice, folder)

    if not outcome.worked:
        voice.say(f"Nothing to do: {folder} is complete.")
    for what, sentences in outcome.notes.items():
        voice.note(f"Note: {what}: {' '.join(sentences)}")
    for label, reason in outcome.skipped.items():
        voice.note(f"Skipped: {label}: {reason}")
    voice.tables(sections)
    if tracker is not None:
        voice.say(f"Tracked: {folder / 'tracking'} ({tracker})")
    return conclude(
        voice,
        folder,
        outcome.failed,
        f"{len(plan.cells)} cells",
        worked=outcome.worked,
        skipped=outcome.skipped,
        notes=outcome.notes,
        left_out=left_out,
    )


def _present_plan(
    voice: Voice, plan: ExperimentFile, run: RunDirectory
) -> tuple[ExperimentFile, dict[str, str]]:
    """Say what the plan trains; returns the plan that can run, and why tasks are left out of it."""
    plan, left_out = plan.drop_missing()
    for sentence in _describe(plan.cells, [*run.missing(plan.cells)]):
        voice.say(sentence)
    for tasks, reason in left_out.items():
        voice.note(f"Left out, as it is optional: {tasks}: {reason}")
    rows = [cell for cell in plan.cells if not cell.is_base]
    if not run.path.exists() and all(cell.loss != REFERENCE for cell in rows):
        voice.note(
            f"Note: There is no {REFERENCE} to compare with: add it to the losses."
        )
    return plan, left_out


def _describe(cells: Sequence[Cell], missing: Iterable[Cell]) -> Iterator[str]:
    """The models of what is missing, each model and task, and each loss that is tuned."""
    from ..encoding.numbers import numeric_vocabulary
    from ..models.tokenizers import load_tokenizer

    models: dict[str, str] = {}
    for cell in missing:
        label = f"{cell.card.label} ({cell.recipe.dtype}"
        if label not in models:
            tokenizer = load_tokenizer(cell.card.folder)
            count = len(numeric_vocabulary(tokenizer, cell.recipe.numeric_rule))
            models[label] = f"{type(tokenizer).__name__}, N = {count:,})"
    if models:
        described = [f"{label}, {tokenizer}" for label, tokenizer in models.items()]
        yield f"Models: {', '.join(described)}."

    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        if cell.trial is None:
            groups.setdefault((cell.model, cell.task), []).append(cell)
    # Two recipes of a run can read the same here.
    lines = [line for group in groups.values() for line in _describe_group(group)]
    yield from dict.fromkeys(lines)

    tuned = {cell.loss: cell for cell in cells if cell.grid}
    for loss, cell in tuned.items():
        points = "; ".join(point.text for point in cell.grid)
        yield f"{loss}: the best of {points} by validation."
    yield from filter(None, dict.fromkeys(cell.engine_note for cell in cells))
    tasks = {cell.task: cell.task_plugin for cell in cells}
    yield from dict.fromkeys(note for task in tasks.values() for note in notes_of(task))


def _describe_group(cells: Sequence[Cell]) -> Iterator[str]:
    """How the cells of a model and task are trained and tested, and which examples lack."""
    cell = cells[-1]
    is_transfer = cell.source is not None
    facts = ["test of transfer" if is_transfer else _describe_training(cell)]
    seeds = dict.fromkeys(str(cell.seed) for cell in cells if not cell.is_base)
    if seeds:
        noun = "seeds" if len(seeds) > 1 else "seed"
        facts.append(f"{noun} {', '.join(seeds)}")
    if not is_transfer and cell.recipe.epochs > 1:
        metrics = selecting_metrics(cell.task_plugin, cell.recipe.select_by)
        labels = [metric.label for metric in metrics]
        facts.append(f"epoch selected by {', then '.join(labels)}")
    facts += ["decoded greedily", *cell.decoders]
    settings = ", ".join(facts)

    # A test of transfer trains nothing, and takes the selection of its source.
    splits: Sequence[Split] = ("test",) if is_transfer else get_args(Split)
    counts = {split: cell.examples_there(split) for split in splits}
    sizes = ", ".join(f"{split} {count:,}" for split, count in counts.items())
    yield f"{cell.card.label} on {cell.task_label}: {settings}; {sizes}."

    for split, count in counts.items():
        size = cell.size(split)
        if count < size:
            yield f"{cell.task}, {split}: {count:,} of the {size:,} examples asked for are there."


def _describe_training(cell: Cell) -> str:
    recipe = cell.recipe
    is_lora = recipe.method == "lora"
    method = f"LoRA r={recipe.lora_rank}" if is_lora else "full fine-tuning"
    epochs = f"{recipe.epochs} epochs" if recipe.epochs > 1 else "1 epoch"
    return (
        f"{method}, {epochs}, batch {recipe.batch_size}, rate {recipe.learning_rate:g}"
    )


def _say_work(
    voice: Voice,
    run: RunDirectory,
    cells: Sequence[Cell],
    missing: Mapping[Cell, Stage],
    runner: Executor,
) -> None:
    """Say how many cells lack which stage, and how much of the disk that takes."""
    from ..run.schedule import disk_bytes

    first: dict[Cell, Stage] = {}
    for cell, stage in missing.items():  # the base trains nothing
        first[cell] = "decode" if cell.is_base and stage == "train" else stage
    trained = [cell for cell in cells if first.get(cell) == "train"]
    end, peak = disk_bytes(trained, runner.slots)

    if voice.as_json:
        plan: list[dict[str, Any]] = []
        for cell in cells:
            to_do: list[Stage] = []
            if cell in first:
                to_do += JOB_STAGES[JOB_STAGES.index(first[cell]) :]
            plan.append({"address": cell.address, "cell": cell.label, "to_do": to_do})
        disk = {"disk_bytes": end, "peak_disk_bytes": peak}
        print_json({"run": str(run.path), "cells": plan, **disk})

    counts = Counter(first.values())
    parts = [f"{counts[stage]} to {stage}" for stage in JOB_STAGES if counts[stage]]
    work = ", ".join(parts) or "all are done"
    weights = f" Weights take up to {decimal(peak)} of the disk." if peak else ""
    voice.say(f"{run.path}: {len(cells)} cells: {work}.{weights}")
