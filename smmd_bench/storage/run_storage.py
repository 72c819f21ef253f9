"""The folder of a run in a storage that fsspec knows: s3://, gs://, file:// and others.

URL/cells/ADDRESS has the files that RUN/cells/ADDRESS has, under the same names, and `files.json`,
which lists them with their digests and is written last: what a killed process had only begun to put
there is in no list. A file that is not as the list says counts as absent, as everywhere in a run.
"""

from __future__ import annotations

import json
import os
import platform
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import fsspec
from fsspec.implementations.local import LocalFileSystem

from ..errors import UserError
from .addresses import content_digest, require_inside
from .files import atomic

LIST = "files.json"
Listed = dict[str, str]
"""Digest by name."""


class RunStorage:
    """A run's folder at a URL. Raises UserError where nothing can be written there."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self._left: dict[str, Listed] = {}
        probe = f".{platform.node()}-{os.getpid()}.probe"
        try:
            options = {"skip_instance_cache": True, "use_listings_cache": False}
            self.fs, self.root = fsspec.url_to_fs(self.url, **options)
            if isinstance(self.fs, LocalFileSystem):
                self.fs.auto_mkdir = True
            self.fs.pipe_file(f"{self.root}/{probe}", b"")
            self.fs.rm_file(f"{self.root}/{probe}")
        except Exception as error:  # every kind of storage has errors of its own
            reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
            raise UserError(
                f"Nothing can be written to the storage {url} ({reason}): check the URL and the "
                "credentials that its fsspec library reads."
            ) from error

    def put(self, run: Path, folder: str) -> None:
        """Make a folder of the storage as that of the run; what `fetch` left out stays."""
        here, there = run / folder, self.list(folder)
        listed = {}
        for name in sorted(_names(here), key=_place):
            file = here / name
            digest = _digest(file)
            if digest is not None and there.get(name) != digest:
                self.put_file(file, f"{folder}/{name}")
            if digest is not None and _digest(file) == digest:  # not one that is being written
                listed[name] = digest
        listed = {**self._left.get(folder, {}), **listed}
        if listed != there:
            text = json.dumps(listed, indent=1).encode()
            self.fs.pipe_file(f"{self.root}/{folder}/{LIST}", text)
        for name in there.keys() - listed.keys():
            with suppress(FileNotFoundError):
                self.fs.rm_file(f"{self.root}/{folder}/{name}")

    def fetch(self, run: Path, folder: str, *, weights: bool = True, plan: bool = True) -> None:
        """Make a folder of the run as that of the storage, unless there is none.

        weights: or else those of the training and the epochs are left out. plan: or else cell.json
        stays as it is.
        """
        there, here = self.list(folder), run / folder
        if not there:
            return
        self._left[folder] = {n: d for n, d in there.items() if not weights and _is_large(n)}
        stays = {*self._left[folder], *(() if plan else ("cell.json",))}
        changed = [n for n, d in there.items() if n not in stays and _digest(here / n) != d]
        for name in sorted({*changed, *_names(here) - there.keys()} - stays, key=_place)[::-1]:
            (here / name).unlink(missing_ok=True)
        for name in sorted(changed, key=_place):
            with atomic(here / name) as part:
                self.fs.get_file(f"{self.root}/{folder}/{name}", str(part))
            if _digest(here / name) != there[name]:
                (here / name).unlink()
        for found in sorted(here.rglob("*"), reverse=True):
            if found.is_dir() and not any(found.iterdir()):
                found.rmdir()

    def put_file(self, file: Path, name: str) -> None:
        """Put a file under a name."""
        self.fs.put_file(str(file), f"{self.root}/{name}")

    def fetch_file(self, file: Path, name: str) -> None:
        """Write the file of this name, if there is one."""
        if self.fs.exists(f"{self.root}/{name}"):
            with atomic(file) as part:
                self.fs.get_file(f"{self.root}/{name}", str(part))

    def list(self, folder: str) -> Listed:
        """What a folder's list says; empty: there is none."""
        try:
            found = json.loads(self.fs.cat_file(f"{self.root}/{folder}/{LIST}"))
        except FileNotFoundError:
            return {}
        where = f"{self.url}/{folder}/{LIST}"
        return {require_inside(str(name), where): str(digest) for name, digest in found.items()}


def _names(folder: Path) -> set[str]:
    """The files below a folder, but for those that are being written."""
    names = (file.relative_to(folder) for file in folder.rglob("*") if file.is_file())
    return {n.as_posix() for n in names if not any(part.startswith(".") for part in n.parts)}


def _place(name: str) -> tuple[bool, bool, str]:
    """What says that others are whole comes after them: canaries, then receipts."""
    return "/" not in name, name.endswith("canary.json"), name


def _is_large(name: str) -> bool:
    return name.startswith(("epochs/", "training/", "checkpoint/")) and (
        not name.endswith("/canary.json")
    )


def _digest(file: Path) -> str | None:
    """Of a file's content; None: it is gone."""
    try:
        status = file.stat()
        return _known(file, status.st_size, status.st_mtime_ns, status.st_ino)
    except FileNotFoundError:
        return None


@lru_cache(maxsize=100_000)
def _known(file: Path, size: int, modified: int, inode: int) -> str:
    return content_digest(file)
