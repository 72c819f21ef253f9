"""The folder of a run: who may write there, what is done in it, and what each stage left."""

import os
import traceback
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal, Self

from filelock import FileLock, Timeout

from ..errors import CellSkippedError, UserError
from ..experiment.cell import Cell
from ..experiment.experiment import Experiment, each_once
from ..models.circumstances import circumstances
from ..results.frames import FORMAT
from ..results.summary import distinct, what_the_cells_say
from ..storage.current import CurrentCell
from ..storage.files import (
    DamagedError,
    read_own_json,
    remove_leftovers,
    write_json,
    write_json_if_new,
    write_text,
)
from ..storage.manifest import (
    PLUGIN_PATHS,
    are_alike,
    is_row,
    kept_plugin,
    plugin_files_of,
    read_manifest,
)
from .cell_json import describe_cells, with_rules_of

Stage = Literal["train", "decode", "measure"]
STAGES: tuple[Stage, ...] = ("train", "decode", "measure")
identity_of = itemgetter("model", "task", "loss", "seed")
"""What tells a cell from the others that a run holds, from its cell.json."""
_WRITERS = 16
"""Threads that write the cells' files."""


@dataclass
class Outcome:
    """What a call did: `worked` tells whether anything was missing; cells that failed, or were
    skipped because their loss cannot apply, with the reason; those that another process works on,
    with its name; and what training noted of each."""

    path: Path
    worked: bool = False
    failed: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    elsewhere: dict[str, str] = field(default_factory=dict)
    notes: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class RunDirectory:
    """A run's folder. A cell's folder is named by its train address.

    wanted: the train addresses of cells whose selected weights are needed: see `wanting`.
    """

    path: Path
    wanted: frozenset[str] = frozenset()

    def wanting(self, cells: Iterable[Cell], named: Iterable[str] = ()) -> Self:
        """The same folder, in which the weights that are not there, and that the decoding of these
        cells tests, are trained again, and those of the `named` addresses.

        Of a tuned cell those of all trials: another machine may give weights that choose another.
        """
        wanted = {*named}
        for cell in cells:
            now = self.current(cell)
            lost = now.home is None or now.home.checkpoint is None
            if cell.trial is None and not now.is_decoded and lost:
                wanted |= {one.addresses["train"] for one in (cell.owner, *cell.owner.trials)}
        return replace(self, wanted=frozenset(wanted))

    def cell_folder(self, cell: Cell) -> Path:
        """Where a cell's files are."""
        return cell.folder(self.path)

    def current(self, cell: Cell) -> CurrentCell:
        """The cell's files as they are now."""
        return cell.files(self.path)

    def missing(self, cell: Cell) -> list[Stage]:
        """The stages that are still to do, in order; each implies those after it."""
        now, wanted = self.current(cell), cell.addresses["train"] in self.wanted
        if cell.trial is not None:
            return self._untrained(cell, wanted=wanted)[:2]
        needed = wanted or not now.is_decoded
        if needed and (found := self._untrained(cell, wanted=True)):
            return found
        if not now.is_decoded:
            return _from("decode")
        return _from("measure") if now.metrics is None else []

    def _untrained(self, cell: Cell, *, wanted: bool) -> list[Stage]:
        """The same as long as the weights to test are not selected, or are wanted and not there."""
        now = self.current(cell)
        home, borrowed = now.home, now.home is not now
        if home is None or home.tested is None:
            again = home is not None and not cell.is_base and home.has_every_epoch
            return _from("decode" if again or borrowed else "train")
        if wanted and not cell.is_base and home.checkpoint is None:
            kept = home.has_epoch(home.tested.epoch)
            return _from("decode" if kept or borrowed else "train")
        return []

    def failure(self, cell: Cell) -> dict[str, Any]:
        """The cell's FAILED.json; empty: it did not fail."""
        return self.current(cell).failure

    def notes(self, cell: Cell) -> list[str]:
        """What training and decoding noted for people."""
        now = self.current(cell)
        said = (now.receipt or {}, now.decoding or {})
        return [note for receipt in said for note in receipt.get("notes", [])]

    def require_free(self) -> None:
        """Raise UserError if another process works on the folder: soon, before a plan is made."""
        if (self.path / ".lock").exists():
            with suppress(OSError), self._lock():
                pass

    def require_place(self) -> None:
        """Raise UserError if the folder holds something that is not a run, or cannot be made."""
        found: list[str] = []
        if self.path.is_dir() and not (self.path / "manifest.json").exists():
            own = (".lock", ".manifest.json.")  # a kill left what it had begun of a manifest
            found = sorted(p.name for p in self.path.iterdir() if not p.name.startswith(own))
        if found:
            raise UserError(
                f"The output folder {self.path} is not empty and holds no run ({found[0]}): "
                "choose another with --out."
            )
        there = next(path for path in (self.path, *self.path.absolute().parents) if path.exists())
        if not os.access(there, os.W_OK | os.X_OK):
            raise UserError(
                f"The output folder {self.path} cannot be made, as {there} may not be written: "
                "choose another with --out."
            )

    def _lock(self) -> AbstractContextManager[Any]:
        try:
            return FileLock(self.path / ".lock").acquire(timeout=0)
        except Timeout:
            raise UserError(
                f"Another process is working on {self.path}: wait for it, or choose another folder "
                "with --out."
            ) from None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder for this process alone.

        Raises UserError if it holds something that is not a run, if another process works on it, or
        if it cannot be made.
        """
        self.require_place()
        self.path.mkdir(parents=True, exist_ok=True)
        with self._lock():
            remove_leftovers(self.path)
            yield

    @property
    def manifest(self) -> dict[str, Any]:
        """What manifest.json says; empty: the folder is new."""
        return read_manifest(self.path)

    @property
    def plugin_files(self) -> list[Path]:
        """The plugin files of the folder's experiments, each once: see `plugin_files_of`."""
        return list(plugin_files_of(self.path, self.manifest).values())

    def keep_plugins(self) -> None:
        """Copy the plugin files into the folder, for machines and times that do not have them."""
        for spelled, file in plugin_files_of(self.path, self.manifest).items():
            if (kept := kept_plugin(self.path, spelled)) != file:
                write_text(kept, file.read_text(encoding="utf-8"))

    def require_own(self, experiments: Sequence[Experiment], *, extend: bool) -> None:
        """Raise UserError if the folder belongs to another experiment than the first of these and
        `extend` does not add to it, or if it tests what another task has trained."""
        manifest = self.manifest
        known = manifest.get("experiments", ())
        if manifest and not extend and experiments[0].to_dict() not in known:
            raise UserError(
                f"The output folder {self.path} belongs to another experiment "
                f"({manifest['name']}): choose another with --out, or add to it with --extend."
            )
        new = [cell for experiment in experiments for cell in experiment.cells if cell.source]
        trained_on = {(cell.model, cell.task): cell.trained_on for cell in new}
        for content in self._described(manifest.get("cells", ())):
            earlier = content.get("trained_on")
            now = trained_on.get((content["model"], content["task"]), earlier)
            if earlier not in (None, now):
                raise UserError(
                    f"{self.path} has {content['task']} as the test of {earlier}, and this "
                    f"experiment as that of {now}: choose another folder with --out, or add "
                    "--no-transfers."
                )

    def claim(self, experiments: Sequence[Experiment], name: str | None = None) -> None:
        """Add experiments to those of the folder: write every cell.json, then the manifest.

        `name` is that of a new run (None: the first experiment's). A cell with the same model,
        task, loss and seed as an earlier one takes its place; the files of that one stay. A test of
        transfer goes with the cell that trained its weights, and a trial with the tuned cells that
        it is of. A cell that is no longer a row (`is_row`) goes, too. Cells that another version of
        this package wrote in another format are dropped.
        """
        before = self.manifest
        known = before["cells"] if before.get("format") == FORMAT else ()
        rows = {content["address"]: content for content in self._rows(known)}
        asked = [
            with_rules_of(cell, rows.get(cell.addresses["train"]))
            for cell in each_once(cell for e in experiments for cell in e.cells)
        ]
        described = describe_cells(asked)
        own = [said for cell, said in zip(asked, described, strict=True) if cell.trial is None]
        written = [experiment.to_dict() for experiment in experiments]
        flags = [experiment.to_flags() for experiment in experiments]
        places = {file: str(Path(file).resolve()) for e in experiments for file in e.plugins}
        manifest: dict[str, Any] = {
            "format": FORMAT,
            "name": before.get("name") or name or experiments[0].name,
            "experiments": distinct([*before.get("experiments", ()), *written]),
            "flags": distinct([*before.get("flags", ()), *flags]),
            PLUGIN_PATHS: {**before.get(PLUGIN_PATHS, {}), **places},
            **circumstances(),
            **{key: before[key] for key in ("command", "created") if key in before},
        }
        if not before:  # what a killed claim leaves is this experiment's
            write_json(self.path / "manifest.json", {**manifest, **what_the_cells_say([])})
        for said in described:
            if are_alike(said["addresses"], rows.get(said["address"], {}).get("addresses", {})):
                said.pop("trial", None)  # it stays the row that it is
        paths = [self.path / "cells" / content["address"] / "cell.json" for content in described]
        with ThreadPoolExecutor(_WRITERS) as pool:  # most of a write is waiting for the disk
            list(pool.map(write_json_if_new, paths, described))
        replacing = {identity_of(content): content for content in own}
        same = {content["address"]: content for content in own}  # a model's path, spelled otherwise
        held = [
            same.get(c["address"]) or replacing.get(identity_of(c), c) for c in self._rows(known)
        ]
        held = [*{content["address"]: content for content in [*held, *own]}.values()]
        there = {None, *(content["address"] for content in held)}
        cells = [content for content in held if content.get("source") in there]
        write_json_if_new(self.path / "manifest.json", {**manifest, **what_the_cells_say(cells)})

    def _rows(self, addresses: Iterable[str]) -> list[dict[str, Any]]:
        """The same of those that are rows of the tables."""
        return [c for c in self._described(addresses) if is_row(self.path / "cells", c)]

    def _described(self, addresses: Iterable[str]) -> list[dict[str, Any]]:
        """The cell.json of these cells, where they have one."""
        found = (read_own_json(self.path / "cells" / a / "cell.json") for a in addresses)
        return [content for content in found if content]


def record_failure(folder: Path, stage: str, error: BaseException | str) -> None:
    """Write FAILED.json of a cell, or of an evaluation: the stage, the error, its traceback.

    It counts as long as the cell is asked for as cell.json says now.
    """
    lines = (
        "".join(traceback.format_exception(error)) if isinstance(error, BaseException) else error
    )
    sentence = str(error).strip() or type(error).__name__
    if "No space left on device" in sentence:
        sentence += f": free some space on the disk of {folder}"
    cell = read_own_json(folder / "cell.json") or {}
    write_json(
        folder / "FAILED.json",
        {
            "address": cell.get("addresses", {}).get("measure"),
            "stage": stage,
            "error": sentence,
            "skipped": isinstance(error, CellSkippedError),
            "user_error": isinstance(error, UserError) and not isinstance(error, DamagedError),
            "traceback": lines,
        },
    )


def _from(stage: Stage) -> list[Stage]:
    return list(STAGES[STAGES.index(stage) :])
