"""Where the rows of a task's data come from: a local copy, the cache, or the hub.

`--data-dir DIR` (or `$SMMD_BENCH_DATA`) names a folder with local copies: `DIR/gsm8k/train.jsonl`,
or `DIR/train.jsonl`, or a split that `save_to_disk` of datasets wrote, `DIR/gsm8k/train/`. Data
from the hub, at a pinned revision, are kept as JSON lines in the cache folder,
`data/NAME/REVISION/SPLIT.jsonl`, and never fetched again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Thread
from typing import Any

from filelock import FileLock

from ..errors import UnreachableError, UserError, reason_of
from .addresses import cache_folder, digest_of_files
from .files import write_text

VARIABLE = "SMMD_BENCH_DATA"
_PATIENCE = 2.0
"""Seconds in which the hub must answer. Without an answer its clients ask again for 24 s a file."""
_given: list[Path] = []
"""The folder that the command line of this process gives."""


def give_folder(folder: Path | None) -> None:
    """Set what `data_folder` says here and in the processes of jobs; None: none is given."""
    # The variable is for the processes of jobs, which have no such option.
    _given.clear()
    if folder is not None:
        os.environ[VARIABLE] = str(folder.resolve())
        _given.append(folder)


def data_folder() -> Path | None:
    """Find the folder with local copies of data sets; None: there is none."""
    folder = os.environ.get(VARIABLE)
    return Path(folder) if folder else None


def folder_is_given() -> bool:
    """Whether the command line names the folder."""
    return bool(_given)


@dataclass(frozen=True)
class HubData:
    """A data set of the hub at a fixed commit. `splits`: ours -> those of the hub, joined."""

    repository: str
    revision: str
    configuration: str | None
    splits: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class DataSource:
    """One data set: the names that its files have in a local copy, by split, and its hub entry.

    A local file is JSON lines, a JSON list or Parquet, or the folder of a split of the hub with
    Arrow files. Every row has the `columns`.
    """

    name: str
    local: Mapping[str, tuple[str, ...]]
    hub: HubData
    columns: tuple[str, ...] = ()

    def file(self, split: str) -> Path:
        """Find the file with the rows of a split, of a local copy or in the cache, where it is
        fetched. Raises UserError if the folder of local copies lacks it, or if it cannot be
        fetched."""
        folder = data_folder()
        if folder is None:
            return self._fetch(split)
        places = (folder / self.name, folder)
        for file in (place / name for place in places for name in self.local[split]):
            if file.is_file():
                return file

        # `save_to_disk` writes one split of the hub, and ours may join several.
        parts = self.hub.splits[split]
        if len(parts) == 1:
            for saved in (place / parts[0] for place in places):
                if (saved / "state.json").is_file():
                    return saved

        raise UserError(
            f"The data folder {folder} has no {self.name}/{self.local[split][0]}: put the file "
            f"there, or leave out --data-dir (and {VARIABLE}) to fetch it from the hub."
        )

    def _fetch(self, split: str) -> Path:
        kept = (
            cache_folder() / "data" / self.name / self.hub.revision / f"{split}.jsonl"
        )
        if kept.is_file():
            return kept
        kept.parent.mkdir(parents=True, exist_ok=True)
        # Several processes of a run begin with the same data.
        with FileLock(kept.with_suffix(".lock")):
            if not kept.is_file():
                lines = [
                    json.dumps(row, ensure_ascii=False) for row in self._read_hub(split)
                ]
                write_text(kept, "".join(f"{line}\n" for line in lines))
        return kept

    def rows(self, split: str) -> list[dict[str, Any]]:
        """Read the rows of a split, in the order of the file; see `read_rows`."""
        # This imports numpy, which `smmd-bench --help` need not have.
        from .text_rows import read_rows

        return read_rows(self.file(split), self.columns)

    def identity(self, split: str) -> dict[str, Any]:
        """Name what identifies the rows: the digest of the file."""
        file = self.file(split)
        digest = digest_of_files(parts_of(file), file.parent)
        return {"source": self.name, "split": split, "digest": digest}

    def _read_hub(self, split: str) -> list[dict[str, Any]]:
        from datasets import load_dataset

        hub = self.hub
        rows: list[dict[str, Any]] = []
        what = f"The data {hub.repository} cannot be fetched from the hub"
        remedy = (
            f"run `smmd-bench prepare {self.name}` where there is a network, or give a folder that "
            f"holds {self.name}/{self.local[split][0]} with --data-dir"
        )
        with explain_hub(what, remedy):
            for part in hub.splits[split]:
                rows += load_dataset(
                    hub.repository, hub.configuration, split=part, revision=hub.revision
                )
        return rows


def parts_of(file: Path) -> list[Path]:
    """Find what holds the rows of `DataSource.file`: itself, or the Arrow files of a folder."""
    return sorted(file.glob("*.arrow")) if file.is_dir() else [file]


def fetch_snapshot(what: str, remedy: str, repository: str, **options: Any) -> Path:
    """Fetch the folder of a snapshot from the hub. Raises UnreachableError if `what` cannot be
    fetched."""
    from huggingface_hub import snapshot_download

    with explain_hub(f"{what} cannot be fetched from the hub", remedy):
        return Path(snapshot_download(repository, **options))


@contextmanager
def explain_hub(problem: str, remedy: str) -> Iterator[None]:
    """Within `with_hub`, raises UnreachableError for any error of the hub's clients."""
    with with_hub() as offline:
        try:
            yield
        except Exception as error:  # whatever lies between here and the hub
            reason = offline or reason_of(error)
            raise UnreachableError(problem, reason, remedy) from error


@contextmanager
def with_hub() -> Iterator[str | None]:
    """Gives why the hub cannot be asked, or None. If it cannot, its clients read what is in their
    caches, and no more, until the end of the context."""
    from huggingface_hub import constants

    why = _find_problem()
    was_offline = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = why is not None
    try:
        yield why
    finally:
        constants.HF_HUB_OFFLINE = was_offline


def _find_problem() -> str | None:
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return "HF_HUB_OFFLINE is set, as `validate` sets it"
    return _ask_hub(constants.ENDPOINT)


# Once a process: each call would wait anew for a hub that is silent.
@cache
def _ask_hub(endpoint: str) -> str | None:
    from huggingface_hub import get_session

    problem: str | None = f"no answer within {_PATIENCE:g} s"

    def ask() -> None:
        nonlocal problem
        try:
            get_session().head(endpoint, timeout=_PATIENCE)
        except Exception as error:  # whatever lies between here and the hub
            problem = reason_of(error)
        else:
            problem = None

    # No timeout ends the look-up of a name, for which a thread is not waited for.
    thread = Thread(target=ask, daemon=True)
    thread.start()
    thread.join(_PATIENCE)
    return problem and f"{endpoint}: {problem}"
