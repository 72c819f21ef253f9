"""The run folder of scored predictions: the layout of a run, with a cell for each file.

The cells have no train stage. Their decode address follows from the examples and the completions,
so that a file that changed is scored again, and one that was only moved is not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..contracts import Split, Task
from ..errors import UserError
from ..models.circumstances import circumstances
from ..plugin_system.registry import load_task
from ..results.frames import FORMAT, read_run
from ..scoring.measure import measure_identity
from ..storage.addresses import address, folder_name
from ..storage.current import CurrentCell
from ..storage.files import write_json, write_json_if_new, write_parquet
from .comparison import measure_cell, write_comparisons
from .run_directory import Outcome, RunDirectory

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Settings:
    """What is scored, without the completions. task: a canonical spec; limit: None for all."""

    task: str
    split: Split
    data_seed: int
    limit: int | None
    model: str
    labels: list[str]

    @cached_property
    def task_plugin(self) -> Task:
        """The task."""
        return load_task(self.task)


@dataclass(frozen=True, eq=False)
class ScoredFile:
    """One file of completions: a cell. source: what the manifest says of the file."""

    settings: Settings
    label: str
    completions: pd.DataFrame
    source: Mapping[str, Any]

    @cached_property
    def addresses(self) -> dict[str, str]:
        """`train` names the folder and does not follow from the completions; decode, measure."""
        settings, task = self.settings, self.settings.task_plugin
        train = address({"predictions": {**asdict(settings), "labels": self.label}})
        texts = self.completions.to_json(orient="split", index=False)
        decode = address(
            {
                "data": dict(task.identity(settings.split, settings.data_seed)),
                "completions": hashlib.blake2b(texts.encode(), digest_size=16).hexdigest(),
            }
        )
        return {
            "train": train,
            "decode": decode,
            "measure": address({"decode": decode, **measure_identity(task)}),
        }

    def current(self, folder: Path) -> CurrentCell:
        """The file's cell as it is on disk now, in the folder of a run."""
        return CurrentCell(
            folder / "cells" / self.addresses["train"], self.addresses, is_base=False
        )

    def to_json(self) -> dict[str, Any]:
        """What cell.json says: the label stands where a run has its loss."""
        settings = self.settings
        return {
            "address": self.addresses["train"],
            "model": settings.model,
            "model_label": settings.model,
            "params": None,
            "task": settings.task,
            "task_name": settings.task_plugin.name,
            "loss": self.label,
            "reference": settings.labels[0],
            "loss_name": self.label.partition("[")[0],
            "seed": 0,
            "data_seed": settings.data_seed,
            "recipe": {},
            "addresses": self.addresses,
        }


def default_folder(files: Sequence[ScoredFile]) -> Path:
    """runs/score_TASK_LABELS_DIGEST; the digest is that of settings and completions."""
    settings = files[0].settings
    content = {**asdict(settings), "completions": [f.addresses["decode"] for f in files]}
    return Path("runs") / folder_name(("score", settings.task, *settings.labels), content)


def score_into(folder: Path, files: Sequence[ScoredFile]) -> Outcome:
    """Score the files, the first being the reference of the others, and write what is missing.

    `failed` has the error of each label whose scoring failed. Raises UserError if the folder holds
    anything else.
    """
    run, outcome = RunDirectory(folder), Outcome(folder)
    with run.locked():
        if run.manifest and run.manifest.get("predictions") != asdict(files[0].settings):
            raise UserError(
                f"The output folder {folder} belongs to another command "
                f"({run.manifest.get('command')}): choose another with --out."
            )
        todo = [file for file in files if file.current(folder).metrics is None]
        if todo or not run.manifest:
            _write_manifest(run, files)
        for file in files:
            write_json_if_new(file.current(folder).folder / "cell.json", file.to_json())
        for file in todo:
            now = file.current(folder)
            assert now.decode_stamp is not None
            (now.folder / "FAILED.json").unlink(missing_ok=True)
            write_parquet(now.folder / "completions.parquet", file.completions, now.decode_stamp)
            error = measure_cell(now, file.settings.task_plugin, file.completions)
            if error is not None:
                outcome.failed[file.label] = f"{type(error).__name__}: {error}"
        outcome.worked = bool(todo) | write_comparisons(read_run(folder))
    return outcome


def _write_manifest(run: RunDirectory, files: Sequence[ScoredFile]) -> None:
    settings = files[0].settings
    now = circumstances()
    write_json(
        run.path / "manifest.json",
        {
            "format": FORMAT,
            "name": run.path.name,
            "experiment": {
                "models": [settings.model],
                "tasks": [settings.task],
                "losses": settings.labels,
                "seeds": [0],
                "data_seed": settings.data_seed,
            },
            "experiments": [],  # none that `train-eval` could add to
            "predictions": asdict(settings),
            "files": {file.label: dict(file.source) for file in files},
            **now,
            "created": (run.manifest or now)["created"],
            "data": {
                settings.task: {
                    "licence": getattr(settings.task_plugin, "licence", "not stated"),
                    "sizes": {settings.split: len(files[0].completions)},
                }
            },
            "cells": [file.addresses["train"] for file in files],
        },
    )
