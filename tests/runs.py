"""A synthetic run folder, in the format of a real one, from a seeded generator.

The tasks are real in kind, the models are not: each loss has a skill, and what it gets wrong is
wrong in the ways of a small model (off by a little, a wrong sign, a lost zero, no number at all).
`PROBLEMS` and `ANSWERS` are of tasks by name; every other task is arithmetic.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from smmd_bench.contracts import Task
from smmd_bench.errors import UserError
from smmd_bench.plugin_system.registry import load_task
from smmd_bench.results.frames import RunFrames, read_run
from smmd_bench.run.comparison import write_comparisons
from smmd_bench.scoring.measure import measure
from smmd_bench.storage.cell import BASE, StoredCell, stored_cell
from smmd_bench.storage.files import FORMAT, read_json, write_json, write_parquet
from tests import arithmetic_problems, others
from tests.training_frames import probes_of, train_log_of

PROBLEMS = {
    "gsm8k": others.word_problems, "svamp": others.word_problems, "samsum": others.dialogues,
}  # fmt: skip
ANSWERS = {
    "gsm8k": others.word_answers, "svamp": others.word_answers, "samsum": others.dialogue_answers,
    "clock_time": others.vision_answers, "chartqa": others.vision_answers,
}  # fmt: skip
SKILL = {"base": 0.05, "ce": 0.42, "gce": 0.43, "ntl": 0.45, "ntil": 0.44, "smmd": 0.52}
STAGES = ("train", "validate", "select", "decode", "measure")
SMALL_RECIPE = {"epochs": 4, "method": "full"}


def task_of(spec: str) -> Task:
    """The task of that name, or arithmetic in place of one that is not there."""
    try:
        return load_task(spec)
    except UserError:
        return load_task("arithmetic")


def parts_of(address: str, *, base: bool = False) -> dict[str, str]:
    """The parts of a cell with this address."""
    stages = ("train", "decode", "measure") if base else STAGES
    return {
        name: address if name == "train" else f"{name[0]}{address[1:]}"
        for name in stages
    }


def write_trained(run, content, log, selection, weights="") -> StoredCell:
    """Write receipt, log and selection of the cell that a manifest describes.

    log: None for the untuned base, which has no selection either. selection: "metric", "best_epoch"
    and "epochs". weights: another text, other weights.
    """
    cell = stored_cell(run, content)
    if content["loss"] == BASE:
        kind, lines = "base", [{"epoch": 0, "weights": BASE}]
    else:
        kind, lines = "full", []
        for at in (line["epoch"] for line in selection["epochs"]):
            digest = f"weights {weights} of epoch {at} of {content['address']}"
            lines.append({"epoch": at, "weights": digest})

    write_json(cell.trained / "receipt.json", {"kind": kind, "epochs": lines})

    if log is not None:
        write_parquet(cell.trained / "log.parquet", log)
        write_json(stored_cell(run, content).selected / "selection.json", selection)

    return stored_cell(run, content)


def write_measured(cell: StoredCell, completions, probes, scores, metrics) -> None:
    """Write what was decoded and measured of a trained cell."""
    write_json(cell.decoded / "decode.json", {"notes": []})
    write_parquet(cell.decoded / "completions.parquet", completions)
    write_parquet(cell.decoded / "probes.parquet", probes)
    write_parquet(cell.measured / "scores.parquet", scores)
    write_json(cell.measured / "metrics.json", metrics)


def quick_run(path: Path, **names: Any) -> RunFrames:
    """`write_run`, of one seed, few examples and few steps unless `names` say otherwise."""
    return write_run(
        path, **{"seeds": (0,), "n": 20, "steps": 5, "resamples": 20, **names}
    )


def planted_run(path: Path, answers, predictions, **names: Any) -> RunFrames:
    """A quick run of word problems with these answers, and what each loss predicts of them."""
    return quick_run(
        path, planted=Planted(answers, predictions), **{"tasks": ("gsm8k",), **names}
    )


@dataclass(frozen=True)
class CellName:
    """A cell of the synthetic matrix."""

    model: str
    task: str
    loss: str
    seed: int

    @property
    def address(self) -> str:
        return f"{zlib.crc32(repr(self).encode()):08x}{zlib.crc32(repr(self)[::-1].encode()):08x}"


def write_run(
    path: Path,
    *,
    models: Sequence[str] = ("builtin/tiny",),
    tasks: Sequence[str] = ("arithmetic[operations=1..2]",),
    losses: Sequence[str] = ("ce", "ntl", "smmd"),
    seeds: Sequence[int] = (0, 1),
    n: int = 200,
    steps: int = 240,
    base: bool = True,
    resamples: int | None = 200,
    planted: Planted | None = None,
    source: str = "synthetic",
    recipe: Mapping[str, Any] = SMALL_RECIPE,
    weights: str = "",
) -> RunFrames:
    """Write a run folder, and read it.

    `planted` gives the answers, the losses and what each predicts, in place of generated ones.
    `resamples=None` writes approximate intervals without a bootstrap (for large runs). A folder
    that has a run already has the cells of both then.
    `source` is what the manifest says of the data of vision tasks. `recipe` is that of the cells:
    what it does not say counts as the paper's, so that {} is the paper's recipe. `weights`: another
    text, other weights.
    """
    if planted is not None:
        losses = list(planted.predictions)
        base = False

    earlier = read_json(path / "manifest.json") or {
        "experiment": {},
        "data": {},
        "cells": [],
    }
    experiment = {}
    named = {"models": models, "tasks": tasks, "losses": losses, "seeds": seeds}
    for key, values in named.items():
        experiment[key] = [
            *dict.fromkeys([*earlier["experiment"].get(key, ()), *values])
        ]
    data = dict(earlier["data"])
    for task in tasks:
        if _name_of(task) in others.SIZES or "source=" in task:
            data[task] = {"identity": {"test": {"source": source}}}

    cells = {content["address"]: content for content in earlier["cells"]}
    for model, task in product(models, tasks):
        examples = (
            planted.examples() if planted else examples_of(task, n, path / "pictures")
        )
        names = [CellName(model, task, *pair) for pair in product(losses, seeds)]
        if base:
            names.append(CellName(model, task, "base", 0))
        for name in names:
            how = (steps, resamples, planted, recipe, weights)
            cells[name.address] = _write_cell(path, name, examples, *how)

    manifest = {
        "format": FORMAT,
        "name": path.name,
        "experiment": experiment,
        "versions": {"smmd-bench": "0.1.0", "torch": "2.13.0+cpu", "vllm": "0.32.0"},
        "created": "2026-01-02T03:04:05+00:00",
        "command": "smmd-bench train-eval --task arithmetic --losses ce,ntl,smmd",
        "data": data,
        # By address, so that nothing on disk tells the order of the experiment.
        "cells": [cells[address] for address in sorted(cells)],
    }
    write_json(path / "manifest.json", manifest)
    write_comparisons(read_run(path), task_of, resamples=resamples or 2)
    return read_run(path)


@dataclass(frozen=True)
class Planted:
    """Known answers, and what each loss predicts of them.

    A prediction without a number does not parse; an empty one was cut off.
    Those of a loss that differ by seed are {seed: predictions}.
    """

    answers: Sequence[str]
    predictions: Mapping[str, Sequence[str] | Mapping[int, Sequence[str]]]

    def examples(self) -> pd.DataFrame:
        rows = [
            (f"p{at}", "?", f"#### {answer}") for at, answer in enumerate(self.answers)
        ]
        return pd.DataFrame(rows, columns=["uid", "prompt", "target"])

    def completions(self, cell: CellName, examples: pd.DataFrame) -> pd.DataFrame:
        predictions = self.predictions[cell.loss]
        if isinstance(predictions, Mapping):
            predictions = predictions[cell.seed]
        texts = [text and f"#### {text}" for text in predictions]
        return arithmetic_problems.as_completions(examples, texts)


def _name_of(task: str) -> str:
    return task.partition("[")[0]


def examples_of(task: str, n: int, pictures: Path) -> pd.DataFrame:
    """uid, prompt, target and what else the examples of a task have."""
    name, seed = _name_of(task), zlib.crc32(task.encode()) % 1000
    if name in others.SIZES:
        return others.vision_problems(name, n, seed, pictures)
    return PROBLEMS.get(name, arithmetic_problems.problems)(n, seed)


def _write_cell(path, cell, examples, steps, resamples, planted, recipe, weights):
    name = cell.loss.partition("[")[0]
    seed = zlib.crc32(repr(cell).encode())
    skill = float(SKILL[name])
    if name != "base":
        skill += 0.02 * float(np.random.default_rng(seed).normal())
    content = {
        "address": cell.address, "model": cell.model, "model_label": cell.model,
        "task": cell.task, "task_name": _name_of(cell.task), "loss": cell.loss,
        "loss_name": name, "seed": cell.seed, "recipe": dict(recipe),
        "parts": parts_of(cell.address, base=name == "base"), "params": 2_140_000,
    }  # fmt: skip
    epochs = []
    for epoch in range(1, 5):
        share = 100 * skill * (1 - 0.5**epoch)
        epochs.append({"epoch": epoch, "exact_match": share, "n": 100})

    selection = {"best_epoch": 4, "metric": "exact_match", "epochs": epochs}
    log = None if name == "base" else train_log_of(name, steps)
    trained = write_trained(path, content, log, selection, weights)

    if planted is not None:
        completions = planted.completions(cell, examples)
    else:
        answer = ANSWERS.get(_name_of(cell.task), arithmetic_problems.answers_of)
        completions = answer(examples, skill, seed)

    scores, metrics = measure(task_of(cell.task), completions, resamples=resamples or 2)
    if resamples is None:
        for values in metrics["metrics"].values():
            values |= {"low": values["value"] * 0.98, "high": values["value"] * 1.02}

    probes = probes_of(examples, skill, seed)
    write_measured(trained, completions, probes, scores, metrics)
    return content
