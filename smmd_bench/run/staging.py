"""A run in a storage, for machines that share no disk: cells are fetched, worked on, put back."""

import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from ..errors import UserError
from ..experiment.cell import Cell
from ..storage.manifest import PLUGINS, cells_and_trials, read_manifest
from ..storage.run_storage import RunStorage
from .lease import Leases
from .schedule import home_of

MANIFEST = "manifest.json"
_SECONDS = 5.0


def fetch_run(storage: RunStorage, run: Path, *, weights: bool) -> None:
    """Fetch the manifest, plugin files and the folder of every cell; `weights`: with those of the
    epochs."""
    storage.fetch_file(run / MANIFEST, MANIFEST)
    storage.fetch(run, PLUGINS)
    for cell in cells_and_trials(read_manifest(run)):
        storage.fetch(run, f"cells/{cell}", weights=weights)


def put_run(storage: RunStorage, run: Path) -> None:
    """Put plugin files and the folder of every cell where they belong, and then the manifest."""
    storage.put(run, PLUGINS)
    for cell in cells_and_trials(read_manifest(run)):
        storage.put(run, f"cells/{cell}")
    storage.put_file(run / MANIFEST, MANIFEST)


def require_idle(storage: RunStorage, cells: Iterable[Cell]) -> None:
    """Raise UserError where another process works on one of these cells in the storage."""
    leases = Leases(storage.root, storage.fs)
    for home in dict.fromkeys(map(home_of, cells)):
        if (holder := leases.holder(home)) is not None:
            raise UserError(
                f"Cell {home} in {storage.url} is being worked on by {holder}: wait until all "
                "`smmd-bench work` have ended."
            )


class Staged:
    """Folders of a run on this machine while it works on them: fetched at once, put back at the end
    of every epoch and state, and at the end."""

    def __init__(self, storage: RunStorage, run: Path, folders: Sequence[str]) -> None:
        self.storage, self.run, self.folders = storage, run, folders
        for folder in folders:
            planned = (run / folder / "cell.json").exists()
            storage.fetch(run, folder, plan=not planned)
        self.ending = threading.Event()
        self.watcher = threading.Thread(target=self._put_states, daemon=True)
        self.watcher.start()

    def close(self) -> None:
        """Put the folders as they are now."""
        self.ending.set()
        self.watcher.join()
        self._put()

    def _put(self) -> None:
        for folder in self.folders:
            self.storage.put(self.run, folder)

    def _states(self) -> list[Path]:
        """What a training has finished: weights of epochs, and states."""
        kinds = ("epochs/[0-9]*", "training/*/whole.json")
        return sorted(s for f in self.folders for k in kinds for s in (self.run / f).glob(k))

    def _put_states(self) -> None:
        known = self._states()
        while not self.ending.wait(_SECONDS):
            if (found := self._states()) != known:
                with suppress(Exception):  # the storage does not answer: it may the next time
                    self._put()
                    known = found


class StagedLeases(Leases):
    """Leases in a storage: the cells that are taken are staged until they are given back."""

    def __init__(self, storage: RunStorage, run: Path, cells: Iterable[Cell]) -> None:
        super().__init__(storage.root, storage.fs)
        self.storage, self.run = storage, run
        self.staged: dict[str, Staged] = {}
        self.folders: dict[str, list[str]] = {}
        for cell in cells:
            self.folders.setdefault(home_of(cell), []).append(f"cells/{cell.addresses['train']}")

    def take(self, name: str) -> bool:
        """Have a cell, and here what the storage has of it; False: another process has it."""
        if not super().take(name):
            return False
        if name not in self.staged:
            self.staged[name] = Staged(self.storage, self.run, self.folders[name])
        return True

    def give_back(self, name: str) -> None:
        """Put a cell into the storage, and let others have it."""
        if (staged := self.staged.pop(name, None)) is not None:
            staged.close()
        super().give_back(name)
