"""The folder of a run: who may write there, what is done in it, and what each stage left."""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock, Timeout

from .errors import CellSkippedError, UserError
from .experiment import Cell, Experiment
from .manifest import manifest_of, together
from .results.files import parquet_address, read_json, write_json

Stage = Literal["train", "decode", "measure"]
STAGES: tuple[Stage, ...] = ("train", "decode", "measure")


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
        epoch = self._selected_epoch(cell.source or cell)
        if not isinstance(epoch, int):
            return [stage for stage in epoch if stage != "train" or cell.source is None]
        stamp = cell.decode_stamp(epoch)
        if any(
            parquet_address(folder / f"{n}.parquet") != stamp for n in ("completions", "probes")
        ):
            return ["decode", "measure"]
        metrics = read_json(folder / "metrics.json")
        if metrics is None or metrics["address"] != wanted["measure"]:
            return ["measure"]
        return []

    def _selected_epoch(self, cell: Cell) -> int | list[Stage]:
        """The epoch of a cell's weights that is to be tested (the base: 0), or what is missing."""
        folder, wanted = self.cell_folder(cell), cell.addresses
        receipt = read_json(folder / "train.json")
        if receipt is None or receipt["address"] != wanted["train"]:
            return list(STAGES)
        if cell.is_base:
            return 0
        selection = read_json(folder / "selection.json")
        if selection is None or selection["address"] != wanted["select"]:
            return ["decode", "measure"] if _all_epochs(folder, receipt) else list(STAGES)
        epoch = int(selection["best_epoch"])
        kept = read_json(folder / "checkpoint" / "canary.json")
        if (kept is None or kept["epoch"] != epoch) and not _weights(folder, epoch):
            return list(STAGES)
        return epoch

    def select_again(self, cell: Cell) -> None:
        """After a change of parser or metric, select anew from the kept validation completions."""
        folder = self.cell_folder(cell)
        selection = read_json(folder / "selection.json")
        if selection is None or selection["address"] == cell.addresses["select"]:
            return
        if parquet_address(folder / "validation.parquet") == cell.addresses["validate"]:
            import pandas as pd

            from .scoring.selection import select

            chosen = select(cell, pd.read_parquet(folder / "validation.parquet"))
            write_json(folder / "selection.json", chosen)

    def failure(self, cell: Cell) -> dict[str, Any] | None:
        """The cell's FAILED.json."""
        return read_json(self.cell_folder(cell) / "FAILED.json")

    def notes(self, cell: Cell) -> list[str]:
        """What training and decoding noted for people."""
        folder = self.cell_folder(cell)
        receipts = (read_json(folder / name) or {} for name in ("train.json", "decode.json"))
        return [note for receipt in receipts for note in receipt.get("notes", [])]

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

    def claim(self, experiment: Experiment, extend: bool, name: str | None = None) -> None:
        """Write the manifest and every cell.json, or check that the folder is this experiment's.

        `name` is that of a new run (None: the experiment's). With `extend` the experiment is added
        to those of the folder. A cell with the same model,
        task, loss and seed as an earlier one takes its place; the files of that one stay. Raises
        UserError if the folder belongs to another experiment, or holds something that is no run.
        """
        manifest = read_json(self.path / "manifest.json")
        if manifest is None:
            strange = [p.name for p in self.path.iterdir() if p.name != ".lock"]
            if strange:
                raise UserError(
                    f"The output folder {self.path} is not empty and holds no run "
                    f"({sorted(strange)[0]}): choose another with --out."
                )
        elif experiment.to_dict() not in manifest["experiments"] and not extend:
            raise UserError(
                f"The output folder {self.path} belongs to another experiment "
                f"({manifest['name']}): choose another with --out, or add to it with --extend."
            )
        cells = _with_earlier(self.path, experiment.cells, (manifest or {}).get("cells", []))
        _check_training(self.path, experiment.cells, cells)
        earlier = (manifest or {}).get("experiments", [])
        own = experiment.to_dict()
        experiments = earlier if own in earlier else [*earlier, own]
        known = manifest is not None and manifest["cells"] == cells
        if not known or len(experiments) != len(earlier):
            first = manifest or ({} if name is None else {"name": name})
            new = manifest_of(experiment)
            write_json(
                self.path / "manifest.json",
                {
                    **new,
                    **{key: first[key] for key in ("name", "created") if key in first},
                    "experiment": together(experiments),
                    "flags": list(dict.fromkeys([*first.get("flags", []), *new["flags"]])),
                    **{
                        key: {**first.get(key, {}), **new[key]}
                        for key in ("models", "data", "generation")
                    },
                    "experiments": experiments,
                    "cells": cells,
                },
            )
        for leftover in (self.path / "cells").glob("*/.*.part"):  # of a killed process
            if leftover.is_file():
                leftover.unlink()
        for cell in experiment.cells:  # checked each time: a killed claim leaves some unwritten
            file, content = self.cell_folder(cell) / "cell.json", cell_to_json(cell)
            if read_json(file) != json.loads(json.dumps(content)):
                write_json(file, content)

    def forget_failure(self, cell: Cell) -> None:
        """Remove FAILED.json before the cell is tried again."""
        (self.cell_folder(cell) / "FAILED.json").unlink(missing_ok=True)


def record_failure(folder: Path, stage: str, error: BaseException | str) -> None:
    """Write a cell's FAILED.json: the stage, the error, its traceback."""
    lines = (
        "".join(traceback.format_exception(error)) if isinstance(error, BaseException) else error
    )
    sentence = str(error).strip() or type(error).__name__
    if "No space left on device" in sentence:
        sentence += f": free some space on the disk of {folder}"
    write_json(
        folder / "FAILED.json",
        {
            "stage": stage,
            "error": sentence,
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
        "trained_on": cell.trained_on,
        "loss": cell.loss,
        "loss_name": cell.loss.partition("[")[0],
        "seed": cell.seed,
        "data_seed": cell.data_seed,
        "engine": cell.engine,
        **({} if cell.engine_note is None else {"engine_note": cell.engine_note}),
        "recipe": asdict(cell.recipe),
        "addresses": cell.addresses,
    }


def _weights(folder: Path, epoch: int) -> bool:
    return (folder / "epochs" / str(epoch)).is_dir()


def _all_epochs(folder: Path, receipt: dict[str, Any]) -> bool:
    return all(_weights(folder, r["epoch"]) for r in receipt["epochs"])


def _check_training(path: Path, new: list[Cell], cells: list[str]) -> None:
    """Raise UserError where tests of transfer of one name would have been trained on two tasks."""
    trained_on = {(cell.model, cell.task): cell.trained_on for cell in new if cell.source}
    for address in cells:
        content = read_json(path / "cells" / address / "cell.json") or {}
        key = (str(content.get("model")), str(content.get("task")))
        earlier = content.get("trained_on")
        if earlier is not None and trained_on.get(key, earlier) != earlier:
            raise UserError(
                f"{path} has {content['task']} as the test of {earlier}, and this experiment as "
                f"that of {trained_on[key]}: choose another folder with --out, or add "
                "--no-transfers."
            )


def _with_earlier(path: Path, cells: list[Cell], earlier: list[str]) -> list[str]:
    """Addresses of the folder's cells in the order in which they came: of the earlier ones that no
    new one replaces, and of the new ones."""
    new = {cell.addresses["train"]: (cell.model, cell.task, cell.loss, cell.seed) for cell in cells}
    taken = set(new.values())
    kept = []
    for address in earlier:
        content = read_json(path / "cells" / address / "cell.json")
        if address in new:
            kept.append(address)
        elif content is not None:
            identity = tuple(content[k] for k in ("model", "task", "loss", "seed"))
            kept += [address] * (identity not in taken)
    return list(dict.fromkeys([*kept, *new]))
