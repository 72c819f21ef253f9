"""What `train-eval` and `run` say before they start, and what they keep when they are stopped."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from ..contracts import Split
from ..errors import UserError
from ..experiment.cell import Cell
from ..run.run_directory import RunDirectory
from .terminal import print_json
from .voice import Voice

_LARGE = 10**8
"""Weights from which the plan gives the time on a GPU, too."""


def check_folder(folder: Path) -> None:
    """Raise UserError if the output folder is a file, or would lie below one."""
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not there.is_dir():
        raise UserError(
            f"The output folder {folder} cannot be made, because {there} is a file: choose another "
            "with --out."
        )


def say_recipe(voice: Voice, cells: Sequence[Cell]) -> None:
    """Say how each model is trained on each task, and which data are missing."""
    shortages: dict[str, None] = {}

    def count(cell: Cell, split: Split) -> str:
        found = cell.examples_there(split)
        if (sentence := cell.shortage(split, found)) is not None:
            shortages[sentence] = None
        return f"{found:,}"

    for model in dict.fromkeys(cell.model for cell in cells):
        here = [cell for cell in cells if cell.model == model]
        transfers = {cell.task: cell for cell in here if cell.source is not None}
        for cell in {c.task: c for c in here if c.task not in transfers}.values():
            r = cell.recipe
            adapter = f"LoRA r={r.lora_rank}" if r.method == "lora" else "full fine-tuning"
            voice.say(
                f"{cell.card.label} on {cell.task}: {adapter}, {count(cell, 'train')} examples x "
                f"{r.epochs} epochs, batch {r.batch_size}, learning rate {r.learning_rate:g}; "
                f"validation {count(cell, 'validation')}, test {count(cell, 'test')}."
            )
        for cell in transfers.values():
            voice.say(f"  and a test of transfer on {cell.task}: {count(cell, 'test')}.")
        if (note := here[0].engine_note) is not None:
            voice.say(f"  {note}")
    for sentence in shortages:
        voice.say(sentence)


def say_plan(voice: Voice, run: RunDirectory, cells: Sequence[Cell]) -> None:
    """Say which cells are done, and how long the others may take."""
    from ..run.estimate import gpu_hours, seconds, spell_seconds

    todo = {c: [s for s in run.missing(c) if s != "train" or not c.is_base] for c in cells}
    times = {c: round(seconds(c, stages), 1) if stages else 0.0 for c, stages in todo.items()}
    gpu = {c: round(gpu_hours(c, stages), 3) if stages else 0.0 for c, stages in todo.items()}
    total = sum(times.values())
    if voice.as_json:
        plan = [
            {
                "address": cell.addresses["train"],
                "cell": cell.label,
                "to_do": stages,
                "seconds": times[cell],
                "gpu_hours": gpu[cell],
            }
            for cell, stages in todo.items()
        ]
        print_json({"run": str(run.path), "cells": plan, "seconds": round(total, 1)})
    voice.say(f"Output folder: {run.path}")
    for model, task in dict.fromkeys((cell.model, cell.task) for cell in cells):
        voice.say(f"{model} {task}")
        voice.rows(
            (
                f"  {cell.addresses['train']}",
                cell.loss if cell.is_base else f"{cell.loss} seed {cell.seed}",
                f"to do: {', '.join(stages)}, about {spell_seconds(times[cell])}"
                if stages
                else "done",
            )
            for cell, stages in todo.items()
            if (cell.model, cell.task) == (model, task)
        )
    voice.say(f"{len(todo)} cells, about {spell_seconds(total)} on this CPU (a rough estimate).")
    if any(cell.card.parameter_count() >= _LARGE for cell in cells):
        hours = sum(gpu.values())
        voice.say(f"On one A100 about {hours:.1f} GPU hours, from its peak speed; not measured.")


def list_kept(run: RunDirectory, cells: Sequence[Cell]) -> list[str]:
    """What a stopped run has on disk, line by line; removes half-written files."""
    if not (run.path / "manifest.json").is_file():
        return ["The run had not begun."]
    with run.locked():
        for leftover in (run.path / "cells").glob("**/.*.part"):
            shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
    state = {cell: run.missing(cell) for cell in cells}
    finished = sum(not stages for stages in state.values())
    said = [f"{finished} of {len(cells)} cells finished"]
    for cell, stages in state.items():
        if not stages or cell.is_base:
            continue
        epochs = len([*run.cell_folder(cell).glob("epochs/[0-9]*/canary.json")])
        if "train" not in stages and cell.source is None:
            rest = "measured" if stages == ["measure"] else "decoded"
            said.append(f"{cell.label}: trained, to be {rest}")
        elif epochs:
            said.append(f"{cell.label}: {epochs} of {cell.recipe.epochs} epochs")
    return [f"Kept in {run.path}:", *(f"  {line}" for line in said)]
