"""The paper's main grid (Tables 1 to 4: 80 trainings) on 1, 8 and 64 GPUs, as a simulation.

    python benchmarks/scale.py [--gpus 1,8,64]

The jobs come from the real `Schedule`, in the order that it gives them; their work is not done. A
job takes the time of its floating-point operations on an A100 (nothing of it was measured), and an
engine's start besides. Printed per number of GPUs: makespan, the lower bound (all work over the
GPUs, or the longest cell), the share of time in which GPUs are idle, and how many bytes of weights
lie on the disk at most. Aim: makespan within 15% of the bound.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from smmd_bench.contracts import Job, JobResult
from smmd_bench.experiment.cell import Cell
from smmd_bench.experiment.experiment import Experiment
from smmd_bench.models.cards import ModelCard, model_card
from smmd_bench.run import schedule

BILLIONS = {"text": (0.5, 1.5, 3.0, 8.0), "vision": (3.0, 7.0, 3.0, 11.0)}
TASKS = {
    "text": ("gsm8k[source=synthetic]", "arithmetic"),
    "vision": ("clock_time", "chartqa"),
}
SHAPES = {
    "gsm8k": (5, 200), "svamp": (5, 100), "arithmetic": (15, 40), "clock_time": (15, 300),
    "chartqa": (5, 400),
}  # fmt: skip
"""Epochs of the paper's recipe, and tokens of an example, roughly."""
LOSSES = ("ce", "gce", "ntl", "ntil", "smmd")
A100 = 312e12
"""Its peak: bfloat16 operations a second."""
GPU_TRAINING, GPU_DECODING = 0.33, 0.05
"""Shares of it that training and decoding are taken to reach."""
START = 90.0
"""Seconds until an engine of a large model decodes."""
ADAPTER_SHARE = 0.006
"""Of a model's weights: an adapter of rank 16, as float32 over bfloat16."""


class Simulation:
    """Jobs of a schedule on so many GPUs; `time` in seconds, `disk` in bytes. It is the run whose
    cells miss what the simulation has not done."""

    def __init__(self, cells: list[Cell], gpus: int, folder: Path) -> None:
        self.path = folder
        self.left = {cell: "decode" if cell.source else "train" for cell in cells}
        self.gpus, self.time, self.busy, self.disk, self.peak = gpus, 0.0, 0.0, 0.0, 0.0
        self.jobs = schedule.Schedule(self, cells, gpus)  # type: ignore[arg-type]

    def missing(self, cells: Iterable[Cell]) -> dict[Cell, Any]:
        return {cell: self.left[cell] for cell in cells if cell in self.left}

    def failure(self, _: Cell) -> dict[str, object]:
        return {}

    def current(self, cell: Cell) -> Any:
        trained = self.left.get(cell.owner) != "train"
        return SimpleNamespace(key=cell.address, checkpoint=cell if trained else None)

    def play(self) -> None:
        """Until nothing is left."""
        running: list[tuple[float, int, Job]] = []
        started = 0
        while True:
            while len(running) < self.gpus and (job := self.jobs.take()) is not None:
                takes = START * (job.stage == "decode")
                takes += sum(
                    seconds(cell, job.stage) for cell in self.jobs.running[job.name]
                )
                self.busy += takes
                heappush(running, (self.time + takes, started, job))
                started += 1
                if job.stage == "decode":
                    self.jobs.hear_answers(job)
            if not running:
                return
            self.time, _, job = heappop(running)
            for cell in self.jobs.running[job.name]:
                self._end(cell, job.stage)
            self.jobs.end(JobResult(job, None))

    def _end(self, cell: Cell, stage: str) -> None:
        if stage == "train":
            self.left[cell] = "decode"
        else:
            del self.left[cell]
        if not cell.is_base and cell.source is None:
            epochs, _ = SHAPES[cell.task.partition("[")[0]]
            one = 4 * _billions(cell.model) * 1e9 * ADAPTER_SHARE
            self.disk += one * (epochs if stage == "train" else 1 - epochs)
            self.peak = max(self.peak, self.disk)


def _billions(model: str) -> float:
    return float(Path(model).name.removesuffix("B").partition("-")[2])


def seconds(cell: Cell, stage: str) -> float:
    """Of a stage on an A100."""
    epochs, tokens = SHAPES[cell.owner.task.partition("[")[0]]
    sizes, forward = (
        cell.task_plugin.paper_sizes,
        2 * _billions(cell.model) * 1e9 * tokens,
    )
    if stage == "train":
        trained = 0 if cell.is_base else 2 * forward * sizes["train"] * epochs
        return trained / GPU_TRAINING / A100
    validation = 0 if cell.is_base or cell.source else 500 * epochs
    return 2 * forward * (2 * sizes["test"] + validation) / GPU_DECODING / A100


def grid(folder: Path) -> Iterator[Cell]:
    """The cells of Tables 1 to 4; each backbone is a copy of the built-in model, under its name."""
    for kind, sizes in BILLIONS.items():
        for number, size in enumerate(sizes):
            model = folder / f"{kind}{number}-{size}B"
            shutil.copytree(model_card("builtin/tiny").folder, model)
            config = json.loads((model / "config.json").read_text())
            (model / "config.json").write_text(
                json.dumps({**config, "stands_for": model.name})
            )
            with patch(
                "smmd_bench.experiment.experiment.require_images", lambda *_: None
            ):
                yield from Experiment(TASKS[kind], LOSSES, (str(model),)).cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", default="1,8,64")
    with tempfile.TemporaryDirectory() as temporary:
        cells = [*grid(Path(temporary))]
        work = {
            cell: sum(seconds(cell, stage) for stage in ("train", "decode"))
            for cell in cells
        }
        for gpus in map(int, parser.parse_args().gpus.split(",")):
            weights = lambda card: round(_billions(card.name) * 1e9)  # noqa: E731
            with (
                patch.object(schedule, "select_weights", lambda *_: None),
                patch.object(ModelCard, "parameter_count", weights),
            ):
                simulation = Simulation(cells, gpus, Path(temporary))
                simulation.play()
            bound = max(sum(work.values()) / gpus, max(work.values()))
            found = {
                "gpus": gpus,
                "hours": round(simulation.time / 3600, 1),
                "bound_hours": round(bound / 3600, 1),
                "ratio": round(simulation.time / bound, 3),
                "idle": round(1 - simulation.busy / gpus / simulation.time, 3),
                "peak_disk_gb": round(simulation.peak / 1e9, 1),
            }
            print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
