"""What `smmd-bench regress` and `smmd-bench overhead` leave behind, with drawn numbers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..overhead.geometry import named_geometries
from ..overhead.measure import new_frames
from ..overhead.settings import OverheadSettings
from ..results.frames import read_run
from ..results.regression import compared_evaluations, current_evaluations, evaluation_stamp
from ..storage.files import write_json, write_parquet
from .generated_run import GeneratedCell

_SUITES = {
    "mmlu": ("mmlu_stem", "mmlu_humanities", "mmlu_social_sciences", "mmlu_other", "mmlu"),
    "piqa": ("piqa",),
}
_N = 400


def write_regression(run: Path, cells: Sequence[GeneratedCell]) -> None:
    """Evaluate the finished cells of one task by two suites; each against cross-entropy."""
    frames = read_run(run)
    for suite, names in _SUITES.items():
        kind = "task" if suite == "piqa" else "group"
        for cell in cells:
            base = cell.loss == "base"
            address = f"{suite}{cell.address}"[:16]
            folder = run / "regression" / address
            tested = frames.current(cell.address).tested
            assert tested is not None
            described = {
                "address": address, "model": cell.model, "model_label": cell.model,
                "params": 2_140_000, "task": None if base else cell.task, "loss": cell.loss,
                "seed": cell.seed, "cell": None if base else cell.address,
                "epoch": None if base else 2, "kind": "base" if base else "lora",
                "identity": {} if base else {"weights": tested.digest},
                "suite": suite, "shots": 5, "limit": None, "engine": "hf",
            }  # fmt: skip
            rows = [
                {
                    "name": name, "kind": kind, "metric": "acc", "unit": "percent",
                    "value": 100 * cell.skill, "stderr": 1.5, "n": _N,
                }
                for name in names
            ]  # fmt: skip
            results = {"address": address, "shots": 5, "documents": _N, "truncated": 0}
            write_json(folder / "suite.json", described)
            write_json(folder / "results.json", {**results, "context": 2048, "rows": rows})
    compared = {"difference": 1.2, "low": -0.4, "high": 2.8, "b": 9, "c": 5, "p": 0.4, "n": _N}
    for mine, other in compared_evaluations(current_evaluations(frames)):
        if mine["loss"] != "ce":
            found = {
                "address": evaluation_stamp(mine, other), "against": other["address"],
                "against_loss": other["loss"], "metrics": {"acc": compared},
            }  # fmt: skip
            write_json(run / "regression" / mine["address"] / "comparison.json", found)


def write_overhead(folder: Path, losses: Sequence[str]) -> Path:
    """A measurement of step times on a made-up GPU; returns the folder."""
    tiny = named_geometries()["tiny"]
    settings = OverheadSettings(
        geometry=tiny.name,
        config=tiny.config,
        losses=dict.fromkeys(("ce", *losses), 1),
        numeric_tokens=tiny.numeric_tokens or 10,
        device="cuda",
        steps=6,
        drop=2,
        repeats=2,
    )
    write_json(folder / "manifest.json", {"name": "overhead", "overhead": settings.to_dict()})
    rng = np.random.default_rng(0)
    steps: list[list[Any]] = []
    runs: list[list[Any]] = []
    for row in settings.rows:
        for repeat in range(settings.repeats):
            runs.append([row, repeat, int(5e9), "a made-up GPU", 1, None])
            for step in range(1, settings.steps + 1):
                wall = 0.4 * float(rng.normal(1, 0.02))
                steps.append([row, repeat, step, wall, wall, step <= settings.drop])
    for name, frame in new_frames(steps, runs).items():
        write_parquet(folder / f"{name}.parquet", frame)
    return folder
