"""What a plan says before anything runs: what is trained and tested, what that takes, how long."""

from __future__ import annotations

import shutil
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from itertools import chain, product
from typing import Any, get_args

from rich.filesize import decimal

from ..contracts import Executor, Split
from ..errors import UnreachableError, UserError
from ..experiment.cell import Cell
from ..experiment.file import ExperimentFile
from ..plugin_system.checked_task import notes_of
from ..results.baselines import REFERENCE
from ..run.process import GpuExecutor
from ..run.run_directory import JOB_STAGES, RunDirectory, Stage
from ..scoring.deciding import selecting_metrics
from .voice import Voice, print_json


def present_dry_run(
    plan: ExperimentFile,
    voice: Voice,
    run: RunDirectory,
    runner: Executor,
    *,
    measure: bool,
    extend: bool,
) -> int:
    """Say what a plan does, needs and takes, and check it; the exit status."""
    from ..models.cards import without_weights

    # A plan needs no weights of the hub: its cards say how large they are.
    with nullcontext() if measure else without_weights():
        try:
            whole, left_out = plan.drop_missing()
        except UnreachableError as error:
            raise _present_unreachable(voice, plan, error) from None

        # They import pandas, which an unknown name need not wait for.
        from ..run.measured_pace import measure_pace, pace_of_receipts
        from ..run.needs import costs_of
        from ..run.pace import count_side_by_side, times_of, works_of
        from ..run.pipeline import check_file

        missing = run.missing(whole.cells)
        present_plan(voice, whole.cells, missing, left_out, run)

        with voice.progress(stderr=True) as progress:
            parts = whole, missing, runner, progress
            work, lengths = check_file(run, *parts, extend=extend)
        costs = costs_of(work, lengths)
        for cost in costs:
            voice.say(cost.sentence)

        if measure:
            with voice.progress(stderr=True) as progress:
                pace = measure_pace(work, lengths, runner, run.path, progress)
        else:
            pace = pace_of_receipts(work, run.path, lengths)
        here = count_side_by_side(runner, work)
        times = times_of(works_of(work, lengths), pace, sorted({1, 2, 4, 8, here}))
        if times:
            what = "All" if measure else "By finished trainings, training alone"
            voice.say(pace.sentence)
            voice.say(f"{what} takes about {_describe_times(times, here)}.")

        more = {"trainings": [asdict(cost) for cost in costs], "seconds": times}
        _say_work(voice, run, whole.cells, work, runner, more)
    return 0


def _describe_times(times: Mapping[int, float], here: int) -> str:
    """How long a plan takes with as many jobs side by side as here, and with others."""
    from ..run.pace import span

    others = [f"{span(times[jobs])} with {jobs}" for jobs in times if jobs != here]
    jobs = "1 job" if here == 1 else f"{here} jobs"
    return (
        f"{span(times[here])} with {jobs} at a time, as here ({', '.join(others)}; "
        "a job has a GPU, or cores)"
    )


def _present_unreachable(
    voice: Voice, plan: ExperimentFile, error: UnreachableError
) -> UserError:
    """Say what can be said of a plan without what could not be fetched; returns the error that
    names that."""
    sentences = []
    for experiment in plan.experiments:
        for model, spec in product(experiment.models, experiment.tasks):
            cells = experiment.cells_without_card(model, spec)
            sentences += [_describe_unreachable(cells), *_find_notes(cells)]
    # A task has the same notes with each of its models.
    for sentence in dict.fromkeys(sentences):
        voice.say(sentence)

    models, tasks = plan.find_unreachable()
    named = [f"the model {model}" for model in models]
    named += [f"the data of {task}" for task in tasks]
    words = ["smmd-bench prepare", *tasks, *(f"--model {model}" for model in models)]
    return UserError(
        f"Not looked up: {', '.join(named)}, which cannot be fetched ({error.reason}): run "
        f"`{' '.join(words)}` where there is a network, or give local folders with --model and "
        "--data-dir."
    )


def _describe_unreachable(cells: Sequence[Cell]) -> str:
    """How cells are trained, where their model may not be here."""
    from ..run.needs import count_steps

    cell = cells[0]
    sizes = [f"{split} {cell.size(split):,}" for split in get_args(Split)]
    steps = count_steps(cell.recipe, cell.size("train"))
    losses = ", ".join(dict.fromkeys(cell.loss for cell in cells))
    return (
        f"{cell.model} on {cell.task_label}: {losses}; "
        f"{', '.join(_describe_settings(cell, cells))}; {', '.join(sizes)}; {steps:,} steps a "
        "training."
    )


def present_plan(
    voice: Voice,
    cells: Sequence[Cell],
    missing: Iterable[Cell],
    left_out: Mapping[str, str],
    run: RunDirectory,
) -> None:
    """Say what a plan trains, why tasks are left out of it, and that it has no reference."""
    parts = (
        _describe_models(missing),
        _describe_groups(cells),
        _describe_tuning(cells),
        _find_notes(cells),
    )
    for sentence in chain(*parts):
        voice.say(sentence)
    for tasks, reason in left_out.items():
        voice.note(f"Left out, as it is optional: {tasks}: {reason}")
    # A folder that is there may hold cross-entropy of an earlier command.
    if not run.path.exists() and all(cell.loss != REFERENCE for cell in cells):
        voice.note(
            f"Note: There is no {REFERENCE} to compare with: add it to the losses."
        )


def _describe_models(cells: Iterable[Cell]) -> Iterator[str]:
    """Name the models of cells, each with its tokenizer and the size of V_num."""
    from ..encoding.numbers import numeric_vocabulary
    from ..models.tokenizers import load_tokenizer

    models: dict[str, str] = {}
    for cell in cells:
        label = f"{cell.card.label} ({cell.recipe.dtype}"
        # Cells share their model, whose tokenizer is slow to load.
        if label not in models:
            tokenizer = load_tokenizer(cell.card.folder)
            count = len(numeric_vocabulary(tokenizer, cell.recipe.numeric_rule))
            models[label] = f"{label}, {type(tokenizer).__name__}, N = {count:,})"
    if models:
        yield f"Models: {', '.join(models.values())}."


def _describe_groups(cells: Sequence[Cell]) -> Iterator[str]:
    """Describe how each model is trained and tested on each task."""
    groups: defaultdict[tuple[str, str], list[Cell]] = defaultdict(list)
    for cell in cells:
        if cell.trial is None:
            groups[cell.model, cell.task].append(cell)
    # Two recipes of a run can read the same here.
    lines = chain(*map(_describe_group, groups.values()))
    yield from dict.fromkeys(lines)


def _describe_tuning(cells: Sequence[Cell]) -> Iterator[str]:
    """Name the configurations of each loss that is tuned."""
    tuned = {cell.loss: cell for cell in cells if cell.grid}
    for loss, cell in tuned.items():
        points = "; ".join(point.text for point in cell.grid)
        yield f"{loss}: the best of {points} by validation."


def _find_notes(cells: Sequence[Cell]) -> Iterator[str]:
    """What is to be known of the engines and the data of cells."""
    yield from filter(None, dict.fromkeys(cell.engine_note for cell in cells))
    tasks = {cell.task: cell.task_plugin for cell in cells}
    # Two tasks of one file have the same to say.
    notes = chain(*map(notes_of, tasks.values()))
    yield from dict.fromkeys(notes)


def _describe_group(cells: Sequence[Cell]) -> Iterator[str]:
    """How the cells of a model and task are trained and tested, and which examples lack."""
    # The base, which has no training to describe, comes first where there is one.
    cell = cells[-1]
    splits: Sequence[Split] = get_args(Split)
    # A test of transfer trains nothing, and takes the selection of its source.
    if cell.source is not None:
        splits = ("test",)

    sizes = []
    lacking = []
    for split in splits:
        count = cell.examples_there(split)
        size = cell.size(split)
        sizes.append(f"{split} {count:,}")
        if count < size:
            place = f"{cell.task}, {split}"
            lacking.append(
                f"{place}: {count:,} of the {size:,} examples asked for are there."
            )

    settings = ", ".join(_describe_settings(cell, cells))
    yield f"{cell.card.label} on {cell.task_label}: {settings}; {', '.join(sizes)}."
    yield from lacking


def _describe_settings(cell: Cell, cells: Iterable[Cell]) -> Iterator[str]:
    """How a cell is trained, selected and decoded, with the seeds of all of its group."""
    yield "test of transfer" if cell.source is not None else _describe_training(cell)

    seeds = dict.fromkeys(str(cell.seed) for cell in cells if not cell.is_base)
    if seeds:
        noun = "seeds" if len(seeds) > 1 else "seed"
        yield f"{noun} {', '.join(seeds)}"

    # Of a single epoch there is nothing to select.
    if cell.source is None and cell.recipe.epochs > 1:
        metrics = selecting_metrics(cell.task_plugin, cell.recipe.select_by)
        labels = [metric.label for metric in metrics]
        yield f"epoch selected by {', then '.join(labels)}"

    yield "decoded greedily"
    yield from cell.decoders


def _describe_training(cell: Cell) -> str:
    recipe = cell.recipe
    is_lora = recipe.method == "lora"
    method = f"LoRA r={recipe.lora_rank}" if is_lora else "full fine-tuning"
    epochs = f"{recipe.epochs} epochs" if recipe.epochs > 1 else "1 epoch"
    batch = f"batch {recipe.batch_size}"
    if recipe.micro_batch_size < recipe.batch_size:
        batch += f" in passes of {recipe.micro_batch_size}"
    return f"{method}, {epochs}, {batch}, rate {recipe.learning_rate:g}"


def _say_work(
    voice: Voice,
    run: RunDirectory,
    cells: Sequence[Cell],
    missing: Mapping[Cell, Stage],
    runner: Executor,
    more: Mapping[str, Any],
) -> None:
    """Say how many cells lack which stage, and how much of the disk that takes.

    more: what else the object for machines holds.
    """
    from ..run.needs import disk_bytes

    # The canary of the base is missing as a training is, and yet it trains nothing.
    first: dict[Cell, Stage] = {**missing}
    for cell, stage in missing.items():
        if cell.is_base and stage == "train":
            first[cell] = "decode"
    trained = [cell for cell in cells if first.get(cell) == "train"]
    end, peak = disk_bytes(trained, runner.slots)
    free = shutil.disk_usage(run.nearest).free

    if voice.as_json:
        rows = [_describe_work(cell, first.get(cell)) for cell in cells]
        disk = {"disk_bytes": end, "peak_disk_bytes": peak, "free_disk_bytes": free}
        print_json({"run": str(run.path), "cells": rows, **disk, **more})

    counts = Counter(first.values())
    work = []
    for stage in JOB_STAGES:
        if stage in counts:
            work.append(f"{counts[stage]} to {stage}")
    sentence = f"{run.path}: {len(cells)} cells: {', '.join(work) or 'all are done'}."
    if peak:
        sentence += f" Weights take up to {decimal(peak)} of the disk"
        sentence += f", of which {decimal(free)} are free."
    voice.say(sentence)
    for suggestion in _suggest_sharing(trained, runner):
        voice.say(suggestion)


def _suggest_sharing(trained: Sequence[Cell], runner: Executor) -> Iterator[str]:
    """Suggest that trainings share a GPU where two of the largest fit on each GPU that is here."""
    if not isinstance(runner, GpuExecutor) or len(trained) < 2:
        return
    if runner.gpus_per_cell > 1 or runner.trainings_per_gpu > 1:
        return

    # A plan with nothing to train need not wait for torch.
    import torch

    from ..models.checkpoints import training_bytes

    gpus = map(torch.cuda.get_device_properties, range(torch.cuda.device_count()))
    memory = min((gpu.total_memory for gpu in gpus), default=0)
    if not memory:
        return

    needed = 0.0
    for cell in trained:
        recipe = cell.recipe
        is_estimated = recipe.method == "lora" and recipe.dtype == "bfloat16"
        # Recomputed activations and pictures are in no estimate.
        if not is_estimated or recipe.gradient_checkpointing or cell.reads_images:
            return
        longest = recipe.micro_batch_size * recipe.max_length
        weights = cell.card.parameter_count()
        needed = max(needed, training_bytes(cell.card.folder, weights, longest))

    if 2 * needed < memory:
        most = decimal(round(2 * needed))
        yield (
            f"Two trainings take at most {most} of a GPU's {decimal(memory)}: "
            f"`--executor {runner.name}[trainings_per_gpu=2]` lets them share it."
        )


def _describe_work(cell: Cell, first: Stage | None) -> dict[str, Any]:
    """What a cell is still to go through, for machines; first: the first stage that it lacks."""
    # What lacks a stage lacks all those after it, too.
    start = len(JOB_STAGES) if first is None else JOB_STAGES.index(first)
    to_do = JOB_STAGES[start:]
    return {"address": cell.address, "cell": cell.label, "to_do": to_do}
