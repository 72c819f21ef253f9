"""The folder of a run: who may write there, what it was asked for, what a cell misses."""

import os
import traceback
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock, Timeout

from ..decoding.selection import foresee, select_weights
from ..errors import CellSkippedError, UserError
from ..experiment.cell import Cell
from ..experiment.experiment import Experiment, each_once
from ..experiment.provenance import describe_run
from ..results.availability import require_plugins
from ..results.frames import read_run
from ..results.summary import distinct
from ..storage.addresses import address
from ..storage.cell import FOLDERS, CellRecord, StoredCell, failure_file, stored_cell
from ..storage.files import (
    FORMAT,
    DamagedError,
    read_manifest,
    set_damaged_aside,
    write_json,
    write_text,
)
from .cell_json import cell_from_json, cell_to_json, describe_cells, name_folders

Stage = Literal["train", "decode", "measure"]
JOB_STAGES: tuple[Stage, ...] = ("train", "decode", "measure")
HELD = (*FOLDERS, "regression")  # the folders of a run with results
identity_of = itemgetter("model", "task", "loss", "seed")
"""What tells a cell from the others of a run, from what its manifest says."""


@dataclass(frozen=True)
class RunDirectory:
    """A run's folder: see `smmd_bench.storage.cell`. restore: whether finished cells whose selected
    weights are gone count as unfinished."""

    path: Path
    restore: bool = False

    def current(self, cell: Cell) -> StoredCell:
        """Find the cell's folders as they are now."""
        return cell.stored(self.path)

    def missing(self, cells: Iterable[Cell]) -> dict[Cell, Stage]:
        """Find the first stage that each of these cells still lacks; those that lack none are left
        out.

        A trial is finished once an epoch is selected. A test of transfer and a tuned cell train
        nothing: until others have trained the weights, they are still to be decoded. What is
        validated is taken as selected, as a run selects before it does anything else.
        """
        # All cells are looked at first, as one may need the weights of another.
        states = {}
        needed_trainings = set()
        for cell in cells:
            stored = self.current(cell)
            # An error of the task's own code is recorded by the run, as a failure.
            with suppress(Exception):
                foresee(cell, stored)
            states[cell] = stored
            needed_trainings.add(self._find_needed_training(cell, stored))

        missing: dict[Cell, Stage] = {}
        for cell, stored in states.items():
            stage = _find_missing_stage(cell, stored, needed_trainings)
            if stage is not None:
                missing[cell] = stage

        return missing

    def _find_needed_training(self, cell: Cell, stored: StoredCell) -> str | None:
        """Find the training whose selected weights a cell needs, as far as it is known."""
        if cell.trial is not None or (stored.is_decoded and not self.restore):
            return None
        home = stored.home
        return None if home is None or home.tested is None else home.parts.get("train")

    def failure(self, cell: Cell) -> dict[str, Any]:
        """Read what failed/KEY.json says; empty: the cell did not fail."""
        return self.current(cell).failure

    def notes(self, cell: Cell) -> list[str]:
        """Read what training, selection and decoding noted for people."""
        stored = self.current(cell)
        contents = filter(None, (stored.receipt, stored.selection, stored.decoding))
        return [note for content in contents for note in content.get("notes", ())]

    @property
    def nearest(self) -> Path:
        """The folder, or the nearest one above it that is there."""
        parents = (self.path, *self.path.absolute().parents)
        return next(path for path in parents if path.exists())

    def require_place(self) -> None:
        """Raise UserError if the folder holds something that is not a run, or cannot be made."""
        # A plan of a run needs no permission to write.
        if (self.path / "manifest.json").exists():
            return
        nearest = self.nearest
        if not (nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)):
            raise UserError(
                f"The output folder {self.path} cannot be made, as {nearest} is no folder that may "
                "be written: choose another with --out."
            )

        # A kill left what it had begun of a manifest.
        strange = [
            path.name
            for path in self.path.glob("*")
            if not path.name.startswith((".lock", ".manifest.json."))
        ]
        if strange:
            raise UserError(
                f"The output folder {self.path} is not empty and holds no run ({min(strange)}): "
                "choose another with --out."
            )

    @cached_property
    def _lock(self) -> FileLock:
        return FileLock(self.path / ".lock")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder for this process alone; it may be held already. What has changed since it
        was last held is looked at first, and set aside where it is damaged. Raises UserError as
        `require_place` does, and if another process works on it."""
        if self._lock.is_locked:
            yield
            return
        self.require_place()
        self.path.mkdir(parents=True, exist_ok=True)
        # Its time says when a command has left the folder in peace.
        lock = Path(self._lock.lock_file)
        since = lock.stat().st_mtime if lock.exists() else 0
        try:
            # A run takes hours: nobody waits for it.
            acquired = self._lock.acquire(timeout=0)
        except Timeout:
            raise UserError(
                f"Another process is working on {self.path}: wait for it, or choose another folder "
                "with --out."
            ) from None

        with acquired:
            # What a command before this one wrote and left in peace is whole.
            set_damaged_aside((self.path / stage for stage in HELD), since)
            yield
            lock.touch()  # what this command has written is whole

    @property
    def manifest(self) -> dict[str, Any]:
        """What manifest.json says; empty: the folder is new."""
        return read_manifest(self.path)

    def require_own(self, experiments: Sequence[Experiment], *, extend: bool) -> None:
        """Raise UserError if the folder belongs to another experiment than the first of these and
        `extend` does not add to it, and if it has cells of plugins that are not here, which its
        reports need."""
        manifest = self.manifest
        if "predictions" in manifest:
            raise UserError(
                f"{self.path} holds scored predictions: choose another with --out."
            )
        # Plugin files may have moved; what they do is in the parts of the cells.
        identities = [{**one, "plugins": []} for one in manifest.get("experiments", ())]
        if manifest and not extend and experiments[0].identity not in identities:
            raise UserError(
                f"The output folder {self.path} belongs to another experiment "
                f"({manifest['name']}): choose another with --out, or add to it with --extend."
            )

        if manifest:
            require_plugins(read_run(self.path))

    def claim(self, experiments: Sequence[Experiment], name: str | None = None) -> None:
        """Write the manifest: the cells of these experiments beside those of the folder.

        `name` is that of a new run. A cell takes the place of an earlier one with the same model,
        task, loss and seed, whose folders stay, and a test of transfer goes with its source.
        """
        old = self.manifest
        # A trial is no row of a table: the record of its tuned cell names its folders.
        planned = each_once(
            cell for experiment in experiments for cell in experiment.cells
        )
        records = describe_cells([cell for cell in planned if cell.trial is None])
        described = [experiment.to_dict() for experiment in experiments]
        earlier = old.get("experiments", ())
        together = distinct([*earlier, *described])
        # The libraries are those of today, the time is that of the first call.
        history = describe_run()
        history["created"] = old.get("created", history["created"])
        commands = [old["command"]] if old.get("command") else []
        # A command that goes on with an earlier one adds nothing.
        if len(together) > len(earlier) or not commands:
            commands.append(history["command"])

        manifest: dict[str, Any] = {
            "format": FORMAT,
            "name": old.get("name") or name or experiments[0].name,
            "experiments": together,
            **history,
            "command": "\n".join(commands),
            "cells": self._merge_cells(old.get("cells", ()), records),
        }
        self._write_manifest(manifest)
        self._copy_plugins(experiments)

    def record_folders(self) -> None:
        """Name the folders of each cell again: those of later stages follow from its weights."""
        self._write_manifest(self.manifest)

    def _write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Write the manifest, with the folders of its cells, unless it is there."""
        cells = []
        for record in manifest["cells"]:
            folders = name_folders(stored_cell(self.path, record))
            cells.append({**record, "folders": folders})
        content = {**manifest, "cells": cells}
        # Compared as JSON, in which a tuple is a list.
        if address(content) != address(self.manifest):
            write_json(self.path / "manifest.json", content)

    def _merge_cells(
        self, old: Sequence[CellRecord], records: Sequence[CellRecord]
    ) -> list[CellRecord]:
        """Put the cells that are asked for in the place of those with the same identity."""
        # By address first: a cell is the same where its model's path is spelled otherwise.
        by_address = {record["address"]: record for record in records}
        by_identity = {identity_of(record): record for record in records}
        merged: dict[str, CellRecord] = {}
        for record in old:
            replacing = by_address.get(record["address"]) or by_identity.get(
                identity_of(record)
            )
            kept = replacing or self._measure_anew(record)
            merged[kept["address"]] = kept

        merged |= by_address

        # A test of transfer goes with the cell whose weights it tests.
        return [
            record
            for record in merged.values()
            if "source" not in record or record["source"]["address"] in merged
        ]

    def _copy_plugins(self, experiments: Sequence[Experiment]) -> None:
        """Keep a copy of every plugin's file, for who gets the folder without it."""
        for experiment in experiments:
            for name in experiment.plugins:
                file = Path(name)
                # Two files of one name, from two folders, stay apart.
                copy = self.path / "plugins" / address({"file": str(file)}) / file.name
                write_text(copy, file.read_text(encoding="utf-8"))

    def _measure_anew(self, record: CellRecord) -> CellRecord:
        """Let a cell of an earlier experiment be measured as this version of the software does it;
        without its plugin or model, the cell stays as it is."""
        try:
            cell = cell_from_json(record)
            parts = cell.parts
        except UserError:
            return record

        # The plugin, the data or the model has changed: it would be another training.
        if cell.address != record["address"]:
            return record
        # A stage that only one of them has, as beams, counts as changed.
        changed = {stage for stage, _ in parts.items() ^ record["parts"].items()}
        if not changed or not changed <= {"select", "measure"}:
            return record

        with suppress(Exception):  # of a plugin's own code
            # A new selection may choose an epoch that was never decoded.
            for other in (*cell.owner.trials, cell.owner):
                select_weights(other, self.path)
            if cell.stored(self.path).is_decoded:
                return {**record, **cell_to_json(cell)}

        return record


def _find_missing_stage(
    cell: Cell, stored: StoredCell, needed_trainings: Collection[str | None]
) -> Stage | None:
    """Find the first stage that a cell lacks.

    needed_trainings: those whose selected weights another cell needs, too.
    """
    is_trained_here = cell.source is None and not cell.grid
    lacks = is_trained_here and lacks_weights(stored)
    # A trial is validated, and never tested.
    is_trial = cell.trial is not None
    is_finished = stored.selection is not None if is_trial else stored.is_decoded
    if lacks and (not is_finished or cell.parts["train"] in needed_trainings):
        return "train"
    if not is_finished:
        return "decode"
    if stored.metrics is None and not is_trial:
        return "measure"
    return None


def lacks_weights(stored: StoredCell) -> bool:
    """Check whether a cell must be trained: its selected weights are gone, or, where none are
    selected, those of an epoch are."""
    if stored.is_base:
        return stored.receipt is None  # its canary alone
    if stored.tested is not None:
        return stored.checkpoint is None
    return not stored.weights or not all(map(stored.has_weights, stored.weights))


def record_failure(run: Path, key: str, stage: str, error: BaseException | str) -> None:
    """Write failed/KEY.json: the stage, the error, its traceback.

    key: of a cell, `StoredCell.key`, so that it counts as long as the cell is asked for as now.
    """
    sentence = str(error).strip() or type(error).__name__
    # A library wraps the error of the disk in one of its own.
    if "No space left on device" in sentence:
        sentence += f": free some space on the disk of {run}"
    lines = [str(error)]
    if isinstance(error, BaseException):
        lines = traceback.format_exception(error)

    failure = {
        "stage": stage,
        "error": sentence,
        "skipped": isinstance(error, CellSkippedError),
        "user_error": isinstance(error, UserError)
        and not isinstance(error, DamagedError),
        "traceback": "".join(lines),
    }
    write_json(failure_file(run, key), failure)
