"""What `train-eval` and `run` share: plan, run, report, summary, exit status."""

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from ..contracts import Executor, Split
from ..experiment.cell import Cell
from ..experiment.file import ExperimentFile
from ..plugin_system.registry import load_task
from ..run.run_directory import STAGES, RunDirectory
from ..storage.files import part_of
from ..storage.sizes import spell_bytes
from .interruption import keeping
from .options import require_place, require_used
from .plan_notes import plan_notes, tuning_notes
from .terminal import print_json
from .voice import Voice, advise_retry

_LISTED = 500
"""Cells of a model and task that a plan lists for people."""


def execute(
    plan: ExperimentFile,
    voice: Voice,
    *,
    out: Path | None,
    executor: str,
    extend: bool,
    dry_run: bool,
    track: str,
    restore: bool = False,
) -> int:
    """Run the experiments of one folder and print its tables; returns the exit status."""
    from ..models.cards import without_weights
    from ..plugin_system.registry import load
    from ..training.tracking import require_tracker

    folder = folder_of(plan, out)
    run, tracker = RunDirectory(folder, restore), None if track == "none" else track
    run.require_free()
    runner: Executor = load("executors", executor)
    require_tracker(tracker)
    with without_weights() if dry_run else nullcontext():
        plan, left_out = present_plan(voice, plan, run, runner)
        cells = plan.cells
        if dry_run:
            from ..run.pipeline import check_file

            with voice.progress(stderr=True) as progress:
                check_file(run, plan, progress, extend=extend)
            say_plan(voice, run, cells, runner)
            return 0
    with keeping(lambda: _list_kept(run, cells)):
        from ..run.pipeline import run_file

        how: dict[str, Any] = {"executor": executor, "track": tracker, "restore": restore}
        outcome = run_file(plan, folder, voice.progress, extend=extend, **how)
        voice.publish(folder)
    if not outcome.worked:
        voice.say(f"Nothing to do: {folder} is complete.")
    notes = [(f"Note: {at}", said) for at, all_said in outcome.notes.items() for said in all_said]
    notes += [(f"Skipped: {label}", reason) for label, reason in outcome.skipped.items()]
    notes += [(f"Left out: {tasks}", reason) for tasks, reason in left_out.items()]
    for what, sentence in notes:
        voice.note(f"{what}: {sentence}")
    more = {"skipped": outcome.skipped, "notes": outcome.notes, "left_out": left_out}
    voice.tables(folder)
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


def folder_of(plan: ExperimentFile, out: Path | None) -> Path:
    """The output folder: `out`, or one named by the experiment.

    Raises UserError if it is a file, or would lie below one.
    """
    folder = out or Path("runs") / plan.folder_name
    require_place(folder)
    return folder


def present_plan(
    voice: Voice, plan: ExperimentFile, run: RunDirectory, runner: Executor
) -> tuple[ExperimentFile, dict[str, str]]:
    """Say what the plan trains, and what the user may not have meant; returns the plan that can
    run, and why tasks are left out of it.

    Raises UserError for what is missing before anything is said.
    """
    from ..run.disk import disk_bytes
    from ..storage.data_files import require_folder_read

    _require_plugins_used(plan, runner)
    plan, left_out = plan.that_can_run()
    require_folder_read()
    missing = run.missing(plan.cells)
    say_models(voice, [*missing])
    say_recipe(voice, plan.cells)
    for tasks, reason in left_out.items():
        voice.note(f"Left out, as it is optional: {tasks}: {reason}")
    todo = [cell for cell, stage in missing.items() if stage == "train"]
    _, peak = disk_bytes(todo, runner.slots)
    for sentence in plan_notes(plan, run, plan.cells, peak):
        voice.note(f"Note: {sentence}")
    return plan, left_out


def say_models(voice: Voice, cells: Sequence[Cell]) -> None:
    """Say of each model what is read from its files: numeric tokens, tokenizer class, dtype."""
    how = {(c.model, c.recipe.numeric_rule, c.recipe.dtype): c.card for c in cells}
    for (_, rule, dtype), card in how.items():
        from ..encoding.numbers import numeric_vocabulary
        from ..models.tokenizers import load_tokenizer

        tokenizer = load_tokenizer(card.folder)
        count = len(numeric_vocabulary(tokenizer, rule))
        kind = type(tokenizer).__name__
        voice.say(f"{card.label}: {dtype}, {kind} with N = {count:,} numeric tokens.")


def _require_plugins_used(plan: ExperimentFile, runner: Executor) -> None:
    """Raise UserError for a plugin file that no part of the plan needs."""
    used = {f"executor {runner.name}"}
    for part in plan.experiments:
        specs = {"task": part.tasks, "loss": part.losses, "engine": (part.engine,)}
        used |= {f"{kind} {s.partition('[')[0]}" for kind, given in specs.items() for s in given}
        tests = (getattr(load_task(task), "transfers", ()) for task in part.tasks)
        used |= {f"task {test.partition('[')[0]}" for given in tests for test in given}
    require_used(used, (file for part in plan.experiments for file in part.plugins))


def say_recipe(voice: Voice, cells: Sequence[Cell]) -> None:
    """Say how each model is trained on each task, and which data are missing."""
    shortages: dict[str | None, None] = {}

    def count(cell: Cell, split: Split) -> str:
        found = cell.examples_there(split)
        shortages[cell.shortage(split, found)] = None
        return f"{found:,}"

    for model in dict.fromkeys(cell.model for cell in cells):
        here = [cell for cell in cells if cell.model == model]
        transfers = {cell.task: cell for cell in here if cell.source is not None}
        plain = [c for c in here if c.task not in transfers and c.trial is None]
        for cell in {c.task: c for c in plain}.values():
            r = cell.recipe
            adapter = f"LoRA r={r.lora_rank}" if r.method == "lora" else "full fine-tuning"
            voice.say(
                f"{cell.card.label} on {cell.task}: {adapter}, {count(cell, 'train')} examples x "
                f"{r.epochs} epochs, batch {r.batch_size}, learning rate {r.learning_rate:g}; "
                f"validation {count(cell, 'validation')}, test {count(cell, 'test')}."
            )
        for sentence in tuning_notes(here):
            voice.say(f"  {sentence}")
        if rules := next((cell.decoders for cell in here if cell.decoders), ()):
            voice.say(f"  Decoded greedily, and by the {' and the '.join(rules)} of p(number).")
        for cell in transfers.values():
            voice.say(f"  and a test of transfer on {cell.task}: {count(cell, 'test')}.")
        if (note := here[0].engine_note) is not None:
            voice.say(f"  {note}")
    for sentence in filter(None, shortages):
        voice.say(sentence)


def say_plan(voice: Voice, run: RunDirectory, cells: Sequence[Cell], runner: Executor) -> None:
    """Say which cells are done, what the others miss, and how much of the disk that takes."""
    from ..run.disk import disk_bytes

    missing = run.missing(cells)
    todo = {
        cell: [*STAGES[STAGES.index(missing[cell]) :]] if cell in missing else [] for cell in cells
    }
    todo = {c: [s for s in stages if s != "train" or not c.is_base] for c, stages in todo.items()}
    end, peak = disk_bytes([cell for cell in cells if "train" in todo[cell]], runner.slots)
    if voice.as_json:
        plan = [
            {"address": cell.address, "cell": cell.label, "to_do": stages}
            for cell, stages in todo.items()
        ]
        disk = {"disk_bytes": end, "peak_disk_bytes": peak}
        print_json({"run": str(run.path), "cells": plan, **disk})
    voice.say(f"Output folder: {run.path}")
    for model, task in dict.fromkeys((cell.model, cell.task) for cell in cells):
        voice.say(f"{model} {task}")
        rows = []
        for cell in (c for c in todo if (c.model, c.task) == (model, task)):
            left = f"to do: {', '.join(todo[cell])}" if todo[cell] else "done"
            rows.append((f"  {cell.address}", cell.short_label, left))
        voice.rows(rows[:_LISTED])
        if len(rows) > _LISTED:
            voice.say(f"  and {len(rows) - _LISTED:,} more: --json lists all")
    done = sum(not stages for stages in todo.values())
    voice.say(f"{len(todo)} cells, {done} of them done.")
    if peak:
        voice.say(
            f"Weights take at most about {spell_bytes(peak)} of the disk while it runs, and "
            f"{spell_bytes(end)} at the end."
        )


def _list_kept(run: RunDirectory, cells: Sequence[Cell]) -> list[str]:
    """What a stopped run has on disk, line by line."""
    if not (run.path / "manifest.json").is_file():
        return ["The run had not begun."]
    missing = run.missing(cells)
    said = [f"{len(cells) - len(missing)} of {len(cells)} cells finished"]
    for cell, stage in missing.items():
        if cell.is_base:
            continue
        epochs = part_of(run.current(cell).trained) / "epochs" if stage == "train" else None
        if epochs is None and cell.source is None and not cell.grid:
            rest = "measured" if stage == "measure" else "decoded"
            said.append(f"{cell.label}: trained, to be {rest}")
        elif epochs is not None and (count := len([*epochs.glob("[0-9]*")])):
            said.append(f"{cell.label}: {count} of {cell.recipe.epochs} epochs")
    return [f"Kept in {run.path}:", *(f"  {line}" for line in said)]
