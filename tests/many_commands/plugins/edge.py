"""The edge of the harness: an executor in this process, an engine and a training without a model.

Weights are a text that says what they follow from; answers and probabilities are drawn from it.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from smmd_bench import contracts
from smmd_bench.decoding import stage
from smmd_bench.decoding.stage import decode_cells
from smmd_bench.experiment.cell import Cell
from smmd_bench.models import recipe
from smmd_bench.run.cell_json import cell_from_json
from smmd_bench.run.comparison import measure_cells
from smmd_bench.run.run_directory import record_failure
from smmd_bench.storage.addresses import digest_of_weights
from smmd_bench.storage.cell import BASE
from smmd_bench.storage.files import (
    part_of,
    remove_tree,
    write_json,
    write_parquet,
    write_text,
)
from tests.conftest import silent

VERSION = 1
NO_CANARY = {
    "token_ids": [[1, 2]],
    "log_probabilities": [[-1.0]],
    "pictures": 0,
    "rounded": [],
    "rivals": [],
}
SOFTWARE = {"torch": "stub", "device": "stub"}
machine = {"rounding": 0}
"""Where a training runs: with another rounding it gives other weights from the same inputs."""
trained: dict[tuple[str, str], int] = {}
"""The rounding of the last training, by the run's folder and the training's name."""


trainings: list[str] = []
"""The names of all trainings, in their order."""


class TrainingError(Exception):
    """What a training with learning rate 0.3 ends with."""


def train(cell: Cell, run: Path) -> None:
    """Write what training leaves, in its order: the epochs, the log, the receipt."""
    final = cell.stored(run).trained
    trainings.append(final.name)
    folder = part_of(final)
    if cell.is_base:
        _receipt(folder, "base", [{"epoch": 0, "weights": BASE}])
    elif cell.recipe.learning_rate == 0.3:
        raise TrainingError("the loss became NaN")
    else:
        _write_epochs(cell, folder)
        trained[str(run), final.name] = machine["rounding"]

    remove_tree(final)
    folder.rename(final)


def _write_epochs(cell: Cell, folder: Path) -> None:
    strength = getattr(cell.loss_plugin, "strength", 0)
    rate = cell.recipe.learning_rate
    origin = [cell.task, cell.loss, strength, cell.seed, rate, recipe.TRAINING_VERSION]
    origin.append(machine["rounding"])
    epochs = []
    for epoch in (1, 2):
        place = folder / "epochs" / str(epoch)
        write_text(place / "model.safetensors", json.dumps([*origin, epoch]))
        epochs.append({"epoch": epoch, "weights": digest_of_weights(place)})

    log = pd.DataFrame(
        {"step": [1, 2], "epoch": [1.0, 2.0], "loss": _numbers(str(origin), 2)}
    )
    write_parquet(
        folder / "log.parquet", log.assign(cross_entropy=log["loss"], seconds=0.1)
    )
    _receipt(folder, "full", epochs)


def _receipt(folder: Path, kind: str, epochs: list[dict[str, Any]]) -> None:
    canaries = {str(epoch["epoch"]): NO_CANARY for epoch in epochs}
    write_json(folder / "canaries.json", {"epochs": canaries})
    receipt = {"kind": kind, "epochs": epochs, "made_with": SOFTWARE, "notes": []}
    write_json(folder / "receipt.json", receipt)


def work(stage: str, cells: Sequence[Cell], run: Path) -> dict[Cell, Exception]:
    """Do a job; the error of each cell that failed."""
    failures = {}
    if stage == "train":
        for cell in cells:
            try:
                train(cell, run)
            except TrainingError as error:
                failures[cell] = error
        return failures

    if stage == "decode":
        failures = decode_cells(cells, run, silent)
    decoded = [cell for cell in cells if cell not in failures and cell.trial is None]
    measure_cells(decoded, run, silent)
    return failures


@dataclass(frozen=True)
class InProcess:
    """Runs jobs in this process, so that a kill in a test can be an exception."""

    name = "inprocess"

    slots = 1

    def run(
        self, queue: contracts.JobQueue, folder: Path, progress: contracts.Progress
    ) -> Iterator[contracts.JobResult]:
        while (job := queue.take()) is not None:
            cells = [cell_from_json(content) for content in job.payload["cells"]]
            for cell, failure in work(job.stage, cells, folder).items():
                record_failure(folder, cell.stored(folder).key, job.stage, failure)
            yield contracts.JobResult(job, None)


@dataclass(frozen=True)
class StubEngine:
    """Answers follow from weights, flavour and prompt. With flavour 3 nothing can be decoded."""

    name = "stub"
    version = 1

    flavour: int = contracts.parameter(1, "other answers")

    def identity(self) -> Mapping[str, Any]:
        return {"name": self.name, "flavour": self.flavour, "library": VERSION}

    @contextmanager
    def open(
        self, base: Path, settings: contracts.EngineSettings
    ) -> Iterator["StubSession"]:
        tokenizer = stage.load_tokenizer(base)  # the workshop keeps it
        tokens = tokenizer.convert_tokens_to_ids(["3", "8"]), tokenizer.eos_token_id
        yield StubSession(
            f"{self.flavour} {VERSION}", *tokens, broken=self.flavour == 3
        )


class StubSession:
    """A session of the stub engine."""

    def __init__(
        self, flavour: str, digits: Sequence[int], end: int, *, broken: bool
    ) -> None:
        self.flavour, self.broken, self.tokens = flavour, broken, (*digits, end)

    def generate(self, prompts, checkpoint, **_) -> list[contracts.Completion]:
        if self.broken:
            raise RuntimeError("the engine does not run this model")
        origin = self._origin(checkpoint)
        texts = [
            str(int(5 * _numbers(f"{origin} {list(prompt)}", 1)[0]))
            for prompt in prompts
        ]
        return [contracts.Completion(text, (1, 2), "stop") for text in texts]

    def next_token_probabilities(
        self, prefixes, token_ids, checkpoint: contracts.Checkpoint, **_
    ) -> Any:
        origin = self._origin(checkpoint)
        rows = [
            _numbers(f"{origin} {list(prefix)}", len(token_ids)) for prefix in prefixes
        ]
        weights = np.array(rows).reshape(len(prefixes), len(token_ids))
        return weights / weights.sum(axis=1, keepdims=True)

    def likeliest_tokens(self, prefixes, checkpoint, **_) -> list[dict[int, float]]:
        """Of two digits and the end of the sequence."""
        origin = self._origin(checkpoint)
        rows = [
            np.array(_numbers(f"{origin} {list(ids)}", 3)) + 0.1 for ids in prefixes
        ]
        shares = [[*map(float, np.log(row / row.sum()))] for row in rows]
        return [dict(zip(self.tokens, row, strict=True)) for row in shares]

    def _origin(self, checkpoint: contracts.Checkpoint) -> str:
        if checkpoint.kind == "base":
            return f"base {self.flavour}"
        return (checkpoint.path / "model.safetensors").read_text() + self.flavour


def _numbers(origin: str, count: int) -> list[float]:
    """Numbers of [0, 1) that follow from a text."""
    seed = int.from_bytes(
        hashlib.blake2b(origin.encode(), digest_size=8).digest(), "big"
    )
    return [round(float(x), 6) for x in np.random.default_rng(seed).random(count)]
