"""A synthetic run folder, in the format of a real one, from a seeded generator.

The arithmetic is real (expressions with their exact values), the models are not: each loss has a
skill, and what it gets wrong is wrong in the ways of a small model (off by a little, a wrong sign,
a lost zero, no number at all). The tasks `gsm8k` and `svamp` are word problems, see
`tests.word_problems`; `clock_time` and `chartqa` are pictures, see `tests.vision_problems`; every
other task is arithmetic, but `samsum`, which is dialogues: see `tests.dialogues`.
"""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from smmd_bench.conformance.stamped_cell import addresses_of, write_measured, write_trained
from smmd_bench.contracts import Task
from smmd_bench.errors import UserError
from smmd_bench.plugin_system.registry import load_task
from smmd_bench.results.frames import FORMAT, read_run
from smmd_bench.run.comparison import write_comparisons
from smmd_bench.scoring.measure import measure
from smmd_bench.storage.files import parquet_address, read_json, write_json, write_parquet
from tests import dialogues, vision_problems, word_problems

SKILL = {"base": 0.05, "ce": 0.42, "gce": 0.43, "ntl": 0.45, "ntil": 0.44, "smmd": 0.52}
SMALL_RECIPE = {"epochs": 4, "method": "full"}
AUXILIARY = {"ntl": 1.8, "ntil": 2.4, "gce": 1.2, "smmd": 0.6}


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The default synthetic run: base, ce, ntl and smmd, two seeds. Only to be read."""
    folder = tmp_path_factory.mktemp("runs") / "synthetic"
    write_run(folder)
    return folder


def task_of(spec: str) -> Task:
    """The task of that name, or arithmetic in place of one that is not there."""
    try:
        return load_task(spec)
    except UserError:
        return load_task("arithmetic")


def add_cells(source: Path, folder: Path) -> None:
    """Add the cells of a run to those of another."""
    for cell in (source / "cells").iterdir():
        shutil.copytree(cell, folder / "cells" / cell.name)
    manifests = [read_json(run / "manifest.json") or {} for run in (folder, source)]
    cells = [address for manifest in manifests for address in manifest["cells"]]
    write_json(folder / "manifest.json", {**manifests[0], "cells": cells})


def rewrite(file: Path, frame: pd.DataFrame) -> None:
    """Replace what a Parquet file of a cell holds; its stamp stays."""
    write_parquet(file, frame, parquet_address(file) or "")


def write_failure(folder: Path, failure: Mapping[str, Any]) -> None:
    """Write FAILED.json of a cell as it is asked for now."""
    cell = read_json(folder / "cell.json") or {}
    write_json(folder / "FAILED.json", {**failure, "address": cell["addresses"]["measure"]})


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
) -> list[CellName]:
    """Write a run folder and return its cells.

    `planted` gives the answers, the losses and what each predicts, in place of generated ones.
    `resamples=None` writes approximate intervals without a bootstrap (for large runs). The cells
    have their folders by address, so that nothing on disk tells the order of the experiment.
    A folder that has a run already has the cells of both then.
    `source` is what the manifest says of the data of vision tasks. `recipe` is that of the cells:
    what it does not say counts as the paper's, so that {} is the paper's recipe. `weights`: another
    text, other weights.
    """
    if planted is not None:
        losses, base = list(planted.predictions), False
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "name": path.name,
        "experiment": {
            "models": list(models), "tasks": list(tasks), "losses": list(losses),
            "seeds": list(seeds),
        },
        "versions": {"smmd-bench": "0.1.0", "torch": "2.13.0+cpu", "vllm": "0.32.0"},
        "created": "2026-01-02T03:04:05+00:00",
        "command": "smmd-bench train-eval --task arithmetic --losses ce,ntl,smmd",
        "data": {
            task: {"identity": {"test": {"source": source}}}
            for task in tasks
            if task.partition("[")[0] in vision_problems.TASKS or "source=" in task
        },
    }  # fmt: skip
    cells: list[CellName] = []
    for model in models:
        for task in tasks:
            examples = planted.examples() if planted else _examples_of(task, n, path / "pictures")
            names = [CellName(model, task, "base", 0)] if base else []
            names += [CellName(model, task, loss, seed) for loss in losses for seed in seeds]
            for cell in names:
                _write_cell(
                    path / "cells" / cell.address, cell, examples, steps, resamples, planted,
                    recipe, weights,
                )  # fmt: skip
            cells += names
    there = (read_json(path / "manifest.json") or {}).get("cells", [])
    manifest["cells"] = list(dict.fromkeys([*there, *(cell.address for cell in cells)]))
    write_json(path / "manifest.json", manifest)
    write_comparisons(read_run(path), task_of, resamples=resamples or 2)
    return cells


@dataclass(frozen=True)
class Planted:
    """Known answers, and what each loss predicts of them.

    A prediction without a number does not parse; an empty one was cut off.

    Where the predictions of a loss differ by seed, they are given as {seed: predictions}.
    """

    answers: Sequence[str]
    predictions: Mapping[str, Sequence[str] | Mapping[int, Sequence[str]]]

    def examples(self) -> pd.DataFrame:
        rows = [(f"p{at}", "?", f"#### {answer}") for at, answer in enumerate(self.answers)]
        return pd.DataFrame(rows, columns=["uid", "prompt", "target"])

    def completions(self, cell: CellName, examples: pd.DataFrame) -> pd.DataFrame:
        texts = self.predictions[cell.loss]
        if isinstance(texts, Mapping):
            texts = texts[cell.seed]
        texts = [f"#### {text}" if text else "" for text in texts]
        return word_problems.as_completions(examples, texts)


def _examples_of(task: str, n: int, pictures: Path) -> pd.DataFrame:
    seed, name = zlib.crc32(task.encode()) % 1000, task.partition("[")[0]
    if name in word_problems.TASKS:
        return word_problems.problems(n, seed)
    if name in dialogues.TASKS:
        return dialogues.problems(n, seed)
    if name in vision_problems.TASKS:
        return vision_problems.problems(name, n, seed, pictures)
    return expressions(n, seed)


def expressions(n: int, seed: int) -> pd.DataFrame:
    """Mixed expressions with their exact values: uid, prompt, target, operations, level."""
    rng = np.random.default_rng(seed)
    rows = []
    for at in range(n):
        operations = int(rng.integers(1, 7))
        text, value = str(first := int(rng.integers(0, 100))), Fraction(first)
        for _ in range(operations):
            number = int(rng.integers(1, 60))
            match rng.integers(0, 4):
                case 0:
                    text, value = f"{text} + {number}", value + number
                case 1:
                    text, value = f"{text} - {number}", value - number
                case 2:
                    text, value = f"({text})*{number % 5 + 1}", value * (number % 5 + 1)
                case _:
                    text, value = f"({text})/{number % 4 + 1}", value / (number % 4 + 1)
        uid = f"test-{at:06d}"
        rows.append((uid, f"What is {text}?\nAnswer: ", str(value), operations, "interpolate"))
    return pd.DataFrame(rows, columns=["uid", "prompt", "target", "operations", "level"])


def completions_of(examples: pd.DataFrame, skill: float, seed: int) -> pd.DataFrame:
    """What a model of that skill answers."""
    rng = np.random.default_rng(seed)
    n = len(examples)
    right = rng.random(n) < np.clip(skill * 1.7 - 0.12 * examples["operations"].to_numpy(), 0, 1)
    kind, step = rng.integers(0, 20, n), rng.integers(1, 15, n)
    answers = []
    for target, good, how, by in zip(examples["target"], right, kind, step, strict=True):
        value = Fraction(target)
        if good:
            answers.append(target)
        elif how == 0:
            answers.append("the answer")
        elif how == 1:
            answers.append(str(-value))
        elif how == 2:
            answers.append(str(value * 10))
        else:
            answers.append(str(value + int(by) * (-1 if how % 2 else 1)))
    frame = examples[["uid", "prompt", "target"]].copy()
    frame["completion"] = answers
    frame["finish_reason"] = np.where(np.array(answers) == "the answer", "length", "stop")
    frame["completion_tokens"] = [len(text) + 1 for text in answers]
    frame["prompt_tokens"] = examples["prompt"].str.len().to_numpy()
    return frame.assign(operations=examples["operations"], level=examples["level"])


def probes_of(examples: pd.DataFrame, skill: float, seed: int) -> pd.DataFrame:
    """Digit distributions around the target digits, sharper for a better model.

    The final answer is what stands after ####, or the whole target.
    """
    rng = np.random.default_rng(seed)
    rows = [
        (uid, digit, digit + 2, digit - outside if digit >= outside else -1, int(symbol))
        for uid, target in zip(examples["uid"], examples["target"], strict=True)
        for outside in [sum(c.isdigit() for c in target[: target.rfind("####") + 1])]
        for digit, symbol in enumerate(c for c in target if c.isdigit())
    ]
    columns = ["uid", "digit", "position", "answer_digit", "target_value"]
    frame = pd.DataFrame(rows, columns=columns)
    target = frame["target_value"].to_numpy()
    distance = np.abs(np.arange(10)[None, :] - target[:, None])
    logits = -(0.3 + skill) * distance + 5 * skill * (distance == 0)
    logits = logits + rng.normal(0, 1.2, logits.shape)
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    frame["p_target"] = p[np.arange(len(p)), target]
    frame["maximum"], frame["argmax_value"] = p.max(axis=1), p.argmax(axis=1)
    frame["mean"] = p @ np.arange(10)
    for digit in range(10):
        frame[f"p{digit}"] = p[:, digit]
    vectors: list[list[float] | None] = [list(row) for row in p[:50]]
    frame["vector"] = vectors + [None] * (len(p) - len(vectors))
    return frame


def train_log_of(loss: str, steps: int, seed: int) -> pd.DataFrame:
    """A falling cross-entropy with noise, and an auxiliary where the loss has one."""
    rng = np.random.default_rng(seed)
    step = np.arange(1, steps + 1)
    ce = 2.2 * np.exp(-step / (steps / 3)) + 0.8 + rng.normal(0, 0.08, steps)
    scale = AUXILIARY.get(loss.partition("[")[0])
    decay = np.exp(-step / (steps / 2)) + 0.15
    auxiliary = (
        np.full(steps, np.nan) if scale is None else scale * decay * rng.normal(1, 0.1, steps)
    )
    return pd.DataFrame(
        {
            "step": step,
            "epoch": step / steps * 4,
            "loss": ce + 3 * np.nan_to_num(auxiliary),
            "cross_entropy": ce,
            "auxiliary": auxiliary,
            "relative_auxiliary": 3 * auxiliary / ce,
            "learning_rate": 2e-4 * (1 - step / steps),
            "grad_norm": np.abs(rng.normal(1, 0.2, steps)),
            "tokens": 96,
            "units": 40,
            "seconds": 0.25,
        }
    )


def _write_cell(
    folder: Path,
    cell: CellName,
    examples: pd.DataFrame,
    steps: int,
    resamples: int | None,
    planted: Planted | None,
    recipe: Mapping[str, Any],
    weights: str,
) -> None:
    name = cell.loss.partition("[")[0]
    seed = zlib.crc32(repr(cell).encode())
    skill = SKILL[name] + (0.02 * np.random.default_rng(seed).normal() if name != "base" else 0)
    content = {
        "address": cell.address, "model": cell.model, "model_label": cell.model,
        "task": cell.task, "task_name": cell.task.partition("[")[0], "loss": cell.loss,
        "loss_name": name, "seed": cell.seed, "recipe": dict(recipe),
        "addresses": addresses_of(cell.address), "params": 2_140_000,
    }  # fmt: skip
    epochs = [
        {"epoch": e, "exact_match": 100 * float(skill) * (1 - 0.5**e), "n": 100}
        for e in range(1, 5)
    ]
    trained = write_trained(
        folder,
        content,
        None if name == "base" else train_log_of(name, steps, seed),
        {"best_epoch": 4, "metric": "exact_match", "epochs": epochs},
        weights=weights,
    )
    if planted is not None:
        completions = planted.completions(cell, examples)
    elif cell.task.partition("[")[0] in dialogues.TASKS:
        completions = dialogues.summaries_of(examples, float(skill), seed)
    elif "operations" in examples.columns:
        completions = completions_of(examples, float(skill), seed)
    elif "image" in examples.columns:
        completions = vision_problems.answers_of(examples, float(skill), seed)
    else:
        completions = word_problems.solutions_of(examples, float(skill), seed)
    scores, metrics = measure(task_of(cell.task), completions, resamples=resamples or 2)
    if resamples is None:
        for values in metrics["metrics"].values():
            values |= {"low": values["value"] * 0.98, "high": values["value"] * 1.02}
    probes = probes_of(examples, float(skill), seed)
    write_measured(trained, completions, probes, scores, metrics)
