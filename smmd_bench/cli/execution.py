"""What `train-eval` and `run` share: plan, run, report, summary, exit status."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path

from ..contracts import Executor, Split
from ..experiment.cell import Cell
from ..experiment.file import ExperimentFile
from ..plugin_system.registry import load, load_task
from ..results.opponents import REFERENCE
from ..run.run_directory import STAGES, RunDirectory
from ..storage.sizes import spell_bytes
from .options import require_place, require_used
from .terminal import print_json
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
    restore: bool,
) -> int:
    """Run the experiments of one folder and print its tables; returns the exit status."""
    from ..models.cards import without_weights
    from ..training.tracking import require_tracker

    folder = out or Path("runs") / plan.folder_name
    require_place(folder)
    run, tracker = RunDirectory(folder, restore), None if track == "none" else track
    run.require_free()
    runner: Executor = load("executors", executor)
    require_tracker(tracker)
    with without_weights() if dry_run else nullcontext():
        plan, left_out = _present_plan(voice, plan, run, runner)
        cells = plan.cells
        if dry_run:
            from ..run.pipeline import check_file

            with voice.progress(stderr=True) as progress:
                check_file(run, plan, progress, extend=extend)
            _say_plan(voice, run, cells, runner)
            return 0
    from ..run.pipeline import run_file

    outcome = run_file(
        plan,
        folder,
        voice.progress,
        executor=executor,
        extend=extend,
        track=tracker,
        restore=restore,
    )
    sections = voice.publish(folder)
    if not outcome.worked:
        voice.say(f"Nothing to do: {folder} is complete.")
    notes = [(f"Note: {at}", said) for at, all_said in outcome.notes.items() for said in all_said]
    notes += [(f"Skipped: {label}", reason) for label, reason in outcome.skipped.items()]
    notes += [(f"Left out: {tasks}", reason) for tasks, reason in left_out.items()]
    for what, sentence in notes:
        voice.note(f"{what}: {sentence}")
    more = {"skipped": outcome.skipped, "notes": outcome.notes, "left_out": left_out}
    voice.tables(sections)
    status = voice.conclude(folder, worked=outcome.worked, failed=outcome.failed, **more)
    if tracker is not None:
        voice.say(f"Tracked: {folder / 'tracking'} ({tracker})")
    if outcome.failed:
        failures = [run.failure(cell) for cell in cells if cell.label in outcome.failed]
        voice.fail(
            f"{len(outcome.failed)} of {len(cells)} cells failed; tracebacks are in "
            f"{folder / 'failed'}. {advise_retry(failures)}"
        )
    return status


def _present_plan(
    voice: Voice, plan: ExperimentFile, run: RunDirectory, runner: Executor
) -> tuple[ExperimentFile, dict[str, str]]:
    """Say what the plan trains, and what the user may not have meant; returns the plan that can
    run, and why tasks are left out of it.

    Raises UserError for what is missing before anything is said.
    """
    from ..storage.data_files import require_folder_read

    _require_plugins_used(plan, runner)
    plan, left_out = plan.that_can_run()
    require_folder_read()
    cells, missing = plan.cells, run.missing(plan.cells)
    for sentence in [*_describe_models([*missing]), *_describe_training(cells)]:
        voice.say(sentence)
    for tasks, reason in left_out.items():
        voice.note(f"Left out, as it is optional: {tasks}: {reason}")
    if again := list(dict.fromkeys(text for part in plan.experiments for text in part.repeated)):
        voice.note(f"Note: Given more than once, and counted once: {', '.join(again)}.")
    trained = [cell for cell in cells if not cell.is_base and cell.source is None]
    with_reference = {(cell.model, cell.task) for cell in trained if cell.loss == REFERENCE}
    for model, task in {(cell.model, cell.task) for cell in trained} - with_reference:
        if not run.path.exists():  # which may hold it
            voice.note(f"Note: {model} has no {REFERENCE} for {task} to compare with: add it.")
    return plan, left_out


def _require_plugins_used(plan: ExperimentFile, runner: Executor) -> None:
    """Raise UserError for a plugin file that no part of the plan needs."""
    used = {f"executor {runner.name}"}
    for part in plan.experiments:
        specs = {"task": part.tasks, "loss": part.losses, "engine": (part.engine,)}
        used |= {f"{kind} {s.partition('[')[0]}" for kind, given in specs.items() for s in given}
        tests = (getattr(load_task(task), "transfers", ()) for task in part.tasks)
        used |= {f"task {test.partition('[')[0]}" for given in tests for test in given}
    require_used(used, (file for part in plan.experiments for file in part.plugins))


def _describe_models(cells: Sequence[Cell]) -> Iterator[str]:
    """Of each model, what is read from its files: numeric tokens, tokenizer class, dtype."""
    for (_, rule, dtype), card in {
        (cell.model, cell.recipe.numeric_rule, cell.recipe.dtype): cell.card for cell in cells
    }.items():
        from ..encoding.numbers import numeric_vocabulary
        from ..models.tokenizers import load_tokenizer

        tokenizer = load_tokenizer(card.folder)
        kind, count = type(tokenizer).__name__, len(numeric_vocabulary(tokenizer, rule))
        yield f"{card.label}: {dtype}, {kind} with N = {count:,} numeric tokens."


def _describe_training(cells: Sequence[Cell]) -> Iterator[str]:
    """How each model is trained on each task, and which data are missing."""
    tests = {cell.task for cell in cells if cell.source is not None}
    rows = (c for c in cells if c.trial is None and (c.source is None) == (c.task not in tests))
    shown = {(cell.model, cell.task): cell for cell in rows}
    shortages: dict[str | None, None] = {}

    def count(cell: Cell, split: Split) -> str:
        found = cell.examples_there(split)
        shortages[cell.shortage(split, found)] = None
        return f"{found:,}"

    for cell in shown.values():
        if cell.source is not None:
            yield f"  and a test of transfer on {cell.task}: {count(cell, 'test')}."
            continue
        r = cell.recipe
        adapter = f"LoRA r={r.lora_rank}" if r.method == "lora" else "full fine-tuning"
        yield (
            f"{cell.card.label} on {cell.task}: {adapter}, {count(cell, 'train')} examples x "
            f"{r.epochs} epochs, batch {r.batch_size}, learning rate {r.learning_rate:g}; "
            f"validation {count(cell, 'validation')}, test {count(cell, 'test')}."
        )
        if cell.decoders:
            yield f"  Decoded greedily, and by the {' and the '.join(cell.decoders)} of p(number)."
    for loss, cell in {cell.loss: cell for cell in cells if cell.grid}.items():
        yield f"{loss}: the best of {'; '.join(point.text for point in cell.grid)} by validation."
    yield from dict.fromkeys(cell.engine_note for cell in cells if cell.engine_note is not None)
    yield from filter(None, shortages)


def _say_plan(voice: Voice, run: RunDirectory, cells: Sequence[Cell], runner: Executor) -> None:
    """Say how many cells lack which stage, and how much of the disk that takes."""
    from ..run.disk import disk_bytes

    missing = run.missing(cells)
    first = {cell: "decode" if cell.is_base and s == "train" else s for cell, s in missing.items()}
    end, peak = disk_bytes([cell for cell in cells if first.get(cell) == "train"], runner.slots)
    if voice.as_json:
        todo = {c: [*STAGES[STAGES.index(first[c]) :]] if c in first else [] for c in cells}
        plan = [{"address": c.address, "cell": c.label, "to_do": todo[c]} for c in cells]
        disk = {"disk_bytes": end, "peak_disk_bytes": peak}
        print_json({"run": str(run.path), "cells": plan, **disk})
    counts = Counter(first.values())
    said = ", ".join(f"{counts[stage]} to {stage}" for stage in STAGES if counts[stage])
    voice.say(f"{run.path}: {len(cells)} cells: {said or 'all are done'}.")
    there = next(path for path in (run.path, *run.path.absolute().parents) if path.exists())
    free = shutil.disk_usage(there).free
    sizes = f"{spell_bytes(peak)} of the disk at most and {spell_bytes(end)} at the end"
    if peak:
        voice.say(f"Weights take about {sizes}; {spell_bytes(free)} are free.")
