"""Files and folders that are whole or absent: a temporary name, fsync, one rename."""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from ..errors import UserError, if_full, reason_of

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_LOG = logging.getLogger("smmd_bench")
_SIDE = ("log.parquet", "probes.parquet")
"""Files of a stage from which nothing else is made."""
_NEEDED = {
    "train": ("receipt.json",),
    "validate": ("validation.parquet",),
    "select": ("selection.json",),
    "decode": ("completions.parquet",),
    "beams": ("beams.parquet",),
    "measure": ("scores.parquet", "metrics.json"),
    "compare": ("comparison.json",),
}
"""Files without which a folder of a stage counts as damaged."""
FORMAT = 3
"""Of a run folder. Raise it when what is written there is read in another way."""
CONVERTER = "scripts/convert_run.py of commit c0df192"


@contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; on success fsync it and rename it to `path`, on an
    error remove it. A full disk raises a UserError that names the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # By process, so that two of them never write into one file.
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield temporary
        # Without it, a crash of the machine can leave an empty file under the final name.
        with temporary.open("rb") as stream:
            os.fsync(stream.fileno())
        temporary.replace(path)
    except OSError as error:
        full = if_full(error, path)
        if full is not None:
            raise full from error
        raise
    finally:
        temporary.unlink(missing_ok=True)


def part_of(folder: Path) -> Path:
    """Name where the content of a folder lies while it is made: `STAGE/.KEY.part`."""
    return folder.with_name(f".{folder.name}.part")


@contextmanager
def write_folder(folder: Path) -> Iterator[Path]:
    """Yield the folder's `.part`, with what a killed call left there; on success rename it. Of
    several processes that make one folder, the first one renames."""
    unfinished = part_of(folder)
    unfinished.mkdir(parents=True, exist_ok=True)
    try:
        yield unfinished
        # A folder cannot be renamed over one with files in it.
        unfinished.rename(folder)
    except OSError:
        # What a path holds follows from its name: another process made the same.
        if not folder.exists():
            raise
        shutil.rmtree(unfinished, ignore_errors=True)


def remove_tree(folder: Path) -> None:
    """Remove a folder, which is gone from its place at once."""
    if folder.exists():
        # A command that is killed meanwhile leaves no half of it in its place.
        going = folder.with_name(f".{folder.name}.{uuid4().hex}.part")
        folder.rename(going)
        shutil.rmtree(going)


def set_damaged_aside(stages: Iterable[Path], since: float = 0) -> None:
    """Give each folder of these stages with a damaged or missing file another name, and say so.
    Files that have not changed `since` are taken to be whole. It needs the run's lock."""
    files: list[Path] = []
    # A file that is gone has no time of change: each folder is looked at.
    for stage in stages:
        for folder in stage.glob("*/"):
            # One with a dot is unfinished, or set aside already.
            if "." in folder.name:
                continue
            files += folder.glob("*.*")
            for name in _NEEDED.get(stage.name, ()):
                if not (folder / name).exists():
                    _set_aside(folder / name, "missing")
                    break

    readers: dict[str, Callable[[Path], Any]] = {
        ".json": read_json,
        ".parquet": read_parquet,
    }
    for file in sorted(files):
        reader = readers.get(file.suffix)
        if reader is None or file.name in _SIDE:
            continue
        # Its folder may have been set aside for another file.
        # No program can set the time of a change back, as it can that of a write.
        if not file.exists() or file.stat().st_ctime < since:
            continue
        try:
            reader(file)
        except DamagedError as error:
            _set_aside(file, error.how)


def _set_aside(file: Path, how: str) -> None:
    # Kept, so that one can see what was wrong; of two, the later one.
    aside = file.parent.with_name(f"{file.parent.name}.damaged")
    shutil.rmtree(aside, ignore_errors=True)
    file.parent.rename(aside)
    _LOG.warning("%s is %s: %s is set aside and made again.", file, how, file.parent)


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text atomically; half a surrogate pair becomes "?"."""
    with atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="replace")


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write JSON atomically; NaN is refused, so give None where a number does not exist."""
    write_text(path, f"{json.dumps(dict(value), indent=1, allow_nan=False)}\n")


def read_json(path: Path) -> dict[str, Any] | None:
    """Read the JSON object of a file, which may be damaged; None where there is no file."""
    try:
        value = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, RecursionError) as error:
        raise DamagedError(path, f"not valid JSON ({error})") from error

    if not isinstance(value, dict):
        raise DamagedError(path, "not a JSON object")
    return value


def read_given_json(path: Path) -> dict[str, Any]:
    """Read the same of a file of the user's; empty where there is no file."""
    try:
        return read_json(path) or {}
    except DamagedError as error:
        raise UserError(f"{path} is {error.how}: save or copy it again.") from error


def read_own_json(path: Path) -> dict[str, Any] | None:
    """Read the same of a file in a stage's folder, which counts as absent where it is damaged."""
    try:
        return read_json(path)
    except DamagedError as error:
        _LOG.warning("%s is %s, and counts as absent.", path, error.how)
        _touch(path)
        return None


class DamagedError(UserError):
    """A file is not as it was written."""

    def __init__(
        self, path: Path, how: str, remedy: str = "delete it to make it again"
    ) -> None:
        super().__init__(f"{path} is {how}: {remedy}.")
        self.how = how


def write_parquet(path: Path, frame: pd.DataFrame) -> None:
    """Write a frame to Parquet atomically, with checksums of its pages."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    # A default index is the order of the rows, which the file has anyway.
    table = pa.Table.from_pandas(frame, preserve_index=False)
    with atomic(path) as temporary:
        pq.write_table(table, temporary, compression="zstd", write_page_checksum=True)


def read_parquet(
    path: Path, columns: Collection[str] | None = None, without: Collection[str] = ()
) -> pa.Table:
    """Read those of these columns that a Parquet file has, verified. None: all, `without` some.
    Raises DamagedError where it is damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            names = file.schema_arrow.names
            wanted = (
                [n for n in names if n not in without] if columns is None else columns
            )
            return file.read(columns=[name for name in wanted if name in names])
    # Arrow raises an OSError for pages whose checksum is wrong.
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        # Lack of memory and errors of the disk say nothing about the file.
        if isinstance(error, MemoryError) or getattr(error, "errno", None):
            raise
        remedy = "repeat the command of the run, which makes it again"
        if path.name in _SIDE:
            remedy = "delete it: no result depends on it"
        _touch(path)
        raise DamagedError(path, f"damaged ({reason_of(error)})", remedy) from error


def _touch(damaged: Path) -> None:
    """Let a file count as changed, so that the next `set_damaged_aside` looks at it."""
    with suppress(OSError):
        os.utime(damaged)


def read_manifest(run: Path) -> dict[str, Any]:
    """Read what RUN/manifest.json says; empty where there is none. Raises UserError where it is
    damaged, or in the format of another version of this package."""
    file = run / "manifest.json"
    content = read_json(file) or {}
    # Runs of `smmd-bench overhead` have rows, and no cells.
    if content and not {"format", "overhead"} & content.keys():
        raise UserError(f"{file} is not that of a run: choose another folder.")
    if content.get("format", FORMAT) != FORMAT:
        raise UserError(
            f"{run} is in the format {content.get('format')} of another version of smmd-bench, "
            f"and this one reads {FORMAT}: convert it with {CONVERTER}."
        )

    for cell in content.get("cells", []):
        is_record = isinstance(cell, dict) and {"address", "parts"} <= cell.keys()
        if not is_record:
            raise DamagedError(file, "not the manifest of a run", "copy it again")
    return content


def has_lone_surrogate(text: str) -> bool:
    """Whether a text holds half a surrogate pair, which no file or tokenizer can write."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
