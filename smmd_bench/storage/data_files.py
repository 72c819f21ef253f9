"""Where the rows of a task's data come from: a local copy, the cache, or the hub.

`--data-dir DIR` (or `$SMMD_BENCH_DATA`) names a folder with local copies: `DIR/gsm8k/train.jsonl`,
or `DIR/train.jsonl`, or a split that `save_to_disk` of datasets wrote, `DIR/gsm8k/train/`. Data
from the hub, at a pinned revision, are kept as JSON lines in the cache folder,
`data/NAME/REVISION/SPLIT.jsonl`, and never fetched again.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from filelock import FileLock

from ..errors import UserError, reason_of
from .addresses import cache_folder, digest_of_files
from .csv_files import decode_text, read_csv, require_different
from .files import write_text

VARIABLE = "SMMD_BENCH_DATA"
_given: list[Path] = []
"""The folder that the command line of this process gives."""


def give_folder(folder: Path | None) -> None:
    """Set what `data_folder` says here and in the processes of jobs; None: none is given."""
    _given.clear()
    if folder is not None:
        os.environ[VARIABLE] = str(folder.resolve())
        _given.append(folder)


def data_folder() -> Path | None:
    """The folder with local copies of data sets; None: there is none."""
    found = os.environ.get(VARIABLE)
    return Path(found) if found else None


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
        """The file with the rows of a split, of a local copy or in the cache, where it is fetched.
        Raises UserError if the folder of local copies lacks it, or if it cannot be fetched."""
        if (folder := data_folder()) is None:
            return self._fetched(split)
        places, parts = [folder / self.name, folder], self.hub.splits[split]
        for file in (place / name for place in places for name in self.local[split]):
            if file.is_file():
                return file
        for saved in (place / parts[0] for place in places if len(parts) == 1):
            if (saved / "state.json").is_file():  # of `save_to_disk`
                return saved
        raise UserError(
            f"The data folder {folder} has no {self.name}/{self.local[split][0]}: put the file "
            f"there, or leave out --data-dir (and {VARIABLE}) to fetch it from the hub."
        )

    def _fetched(self, split: str) -> Path:
        kept = cache_folder() / "data" / self.name / self.hub.revision / f"{split}.jsonl"
        if kept.is_file():
            return kept
        kept.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(kept.with_suffix(".lock")):
            if not kept.is_file():
                lines = (json.dumps(row, ensure_ascii=False) for row in self._from_hub(split))
                write_text(kept, "".join(f"{line}\n" for line in lines))
        return kept

    def rows(self, split: str) -> list[dict[str, Any]]:
        """The rows of a split, in the order of the file; see `read_rows`."""
        return read_rows(self.file(split), self.columns)

    def identity(self, split: str) -> dict[str, Any]:
        """What identifies the rows: the digest of the file."""
        file = self.file(split)
        digest = digest_of_files(parts_of(file), file.parent)
        return {"source": self.name, "split": split, "digest": digest}

    def _from_hub(self, split: str) -> list[dict[str, Any]]:
        from datasets import load_dataset

        hub = self.hub
        try:
            return [
                dict(row)
                for part in hub.splits[split]
                for row in load_dataset(
                    hub.repository, hub.configuration, split=part, revision=hub.revision
                )
            ]
        except Exception as error:  # whatever lies between here and the hub
            raise UserError(
                f"The data {hub.repository} cannot be fetched from the hub ({reason_of(error)}): "
                f"run `smmd-bench prepare {self.name}` where there is a network, or give a folder "
                f"that holds {self.name}/{self.local[split][0]} with --data-dir."
            ) from error


def parts_of(file: Path) -> list[Path]:
    """What holds the rows of `DataSource.file`: itself, or the Arrow files of a folder."""
    return sorted(file.glob("*.arrow")) if file.is_dir() else [file]


def fetch_snapshot(what: str, remedy: str, repository: str, **options: Any) -> Path:
    """The folder of a snapshot from the hub. Raises UserError if `what` cannot be fetched."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(repository, **options))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError, ValueError) as error:
        raise UserError(
            f"{what} cannot be fetched from the hub ({reason_of(error)}): {remedy}."
        ) from error


def read_rows(
    file: Path,
    columns: Sequence[str] = (),
    parse: Callable[[Path], Any] | None = None,
    *,
    separator: str | None = None,
    encoding: str | None = None,
    strict: bool = False,
) -> list[dict[str, Any]]:
    """The rows of JSON lines, a JSON list (also with .gz), CSV or Parquet, all of which have the
    columns; see `read_csv` for the separator and what is strict.

    Raises UserError for a file that cannot be read, has no rows or lacks a column.
    """
    try:
        rows: Any = [*parse(file)] if parse else _parse(file, separator, encoding, strict=strict)
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise ValueError("it is not a list of rows")
        if not rows:
            raise ValueError("it has no rows")
        for number, row in enumerate(rows, start=1):
            if lacking := [name for name in columns if row.get(name) is None]:
                raise ValueError(f"row {number} has no {lacking[0]}")
            if has_lone_surrogate(json.dumps(row, ensure_ascii=False, default=str)):
                raise ValueError(f"row {number} holds half a surrogate pair, which is no letter")
        return rows
    except Exception as error:  # also what Python makes of no text, no date, too deep a list
        raise UserError(
            f"{file} is not a readable {file.suffix.removeprefix('.') or 'Arrow'} file "
            f"({' '.join(str(error).split())}): copy it again, or save it as JSON lines, CSV or "
            "Parquet."
        ) from error


def has_lone_surrogate(text: str) -> bool:
    """Whether a text holds half a surrogate pair, which no file or tokenizer can write."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _parse(file: Path, separator: str | None, encoding: str | None, *, strict: bool) -> Any:
    """The rows of a folder, of CSV by its name, of others by their content."""
    if file.is_dir():
        from datasets import Dataset

        return Dataset.load_from_disk(str(file)).to_list()
    name, raw = file.name.lower(), file.read_bytes()
    raw = gzip.decompress(raw) if name.endswith(".gz") else raw
    if raw.startswith(b"PAR1"):
        return _rows_of_parquet(raw)
    if raw.startswith(b"PK\x03\x04"):
        raise ValueError("it is a workbook, or another archive")
    text = decode_text(raw, encoding)
    usual = {".csv": ",", ".tsv": "\t"}.get(Path(name.removesuffix(".gz")).suffix)
    if usual is not None:
        return read_csv(text, usual, separator, strict=strict)
    if text.lstrip().startswith("["):
        return json.loads(text)
    rows = []
    for number, line in enumerate(text.split("\n"), start=1):  # U+2028 is no end of a line
        try:
            rows += [json.loads(line)] if line.strip() else []
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from error
    return rows


def _rows_of_parquet(raw: bytes) -> list[dict[str, Any]]:
    """The rows of Parquet. Numbers of 32 bits stay such: as a Python float, 5.2 has 17 digits."""
    import numpy as np
    import pyarrow.parquet as pq
    from pyarrow import types

    table = pq.ParquetFile(BytesIO(raw)).read()
    require_different(table.column_names)
    rows: list[dict[str, Any]] = table.to_pylist()
    for field in table.schema:
        if types.is_float32(field.type) or types.is_float16(field.type):
            for row in rows:
                value = row[field.name]
                row[field.name] = None if value is None else np.float32(value)
    return rows
