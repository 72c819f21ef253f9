"""What `train-eval` and `run` say before they start, and what is kept when they are stopped."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..contracts import Split
from ..errors import UserError
from ..experiment.cell import Cell
from ..run.run_directory import RunDirectory
from .voice import Voice

_LARGE = 10**8
"""Weights from which the time on a GPU is said, too."""


def check_folder(folder: Path) -> None:
    """Raise UserError if the output folder is a file, or would lie below one."""
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not there.is_dir():
        raise UserError(
            f"The output folder {folder} cannot be made, because {there} is a file: choose another "
            "with --out."
        )


def say_recipe(voice: Voice, cells: Sequence[Cell]) -> None:
    """How each model is trained on each task, and what of the data is missing."""
    said: dict[str, None] = {}

    def there(cell: Cell, split: Split) -> int:
        found = cell.examples_there(split)
        if (sentence := cell.shortage(split, found)) is not None:
            said[sentence] = None
        return found

    for model in dict.fromkeys(cell.model for cell in cells):
        here = [cell for cell in cells if cell.model == model]
        transfers = {cell.task: cell for cell in here if cell.source is not None}
        for cell in {c.task: c for c in here if c.task not in transfers}.values():
            r = cell.recipe
            adapter = f"LoRA r={r.lora_rank}" if r.method == "lora" else "full fine-tuning"
            voice.say(
                f"{cell.card.label} on {cell.task}: {adapter}, {there(cell, 'train'):,} examples x "
                f"{r.epochs} epochs, batch {r.batch_size}, learning rate {r.learning_rate:g}; "
                f"validation {there(cell, 'validation'):,}, test {there(cell, 'test'):,}."
            )
        for cell in transfers.values():
            voice.say(f"  and a test of transfer on {cell.task}: {there(cell, 'test'):,}.")
        if (note := here[0].engine_note) is not None:
            voice.say(f"  {note}")
    for sentence in said:
        voice.say(sentence)


def say_plan(voice: Voice, run: RunDirectory, cells: Sequence[Cell]) -> None:
    """Which cells are done, and how long the others may take."""
    from ..run.estimate import gpu_hours, seconds, spell_seconds

    plan: list[dict[str, Any]] = []
    for cell in cells:
        stages = [s for s in run.missing(cell) if s != "train" or not cell.is_base]
        estimate = seconds(cell, stages) if stages else 0.0
        plan.append(
            {
                "address": cell.addresses["train"],
                "cell": cell.label,
                "to_do": [*stages],
                "seconds": round(estimate, 1),
                "gpu_hours": round(gpu_hours(cell, stages), 3) if stages else 0.0,
            }
        )
    total = sum(line["seconds"] for line in plan)
    voice.result({"run": str(run.path), "cells": plan, "seconds": round(total, 1)})
    voice.say(f"Output folder: {run.path}")
    for place in dict.fromkeys((cell.model, cell.task) for cell in cells):
        voice.say(" ".join(place))
        voice.rows(
            (f"  {line['address']}", _trained(cell), _todo(line))
            for cell, line in zip(cells, plan, strict=True)
            if (cell.model, cell.task) == place
        )
    voice.say(f"{len(plan)} cells, about {spell_seconds(total)} on this CPU (a rough estimate).")
    if any(cell.card.parameter_count() >= _LARGE for cell in cells):
        hours = sum(line["gpu_hours"] for line in plan)
        voice.say(f"On one A100 about {hours:.1f} GPU hours, from its peak speed; not measured.")


def _trained(cell: Cell) -> str:
    return cell.loss if cell.is_base else f"{cell.loss} seed {cell.seed}"


def _todo(line: Mapping[str, Any]) -> str:
    from ..run.estimate import spell_seconds

    if not line["to_do"]:
        return "done"
    return f"to do: {', '.join(line['to_do'])}, about {spell_seconds(line['seconds'])}"


def kept(run: RunDirectory, cells: Sequence[Cell]) -> list[str]:
    """What a stopped run has on disk; half-written files are removed."""
    if not (run.path / "manifest.json").is_file():
        return ["Nothing was begun."]
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
