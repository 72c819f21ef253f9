"""Files that are whole or absent: temporary name, fsync, rename; a digest tells of damage."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UserError, if_full, reason_of
from .remembered import remembered

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_LOG = logging.getLogger("smmd_bench")
_CHECK = "checksum"
_LAST_LINE = re.compile(rb',\n "checksum": "([0-9a-f]{16})"\n}\n$')
_PAIR = re.compile(rb"\\u[dD][89a-fA-F]")
"""What JSON writes for half a surrogate pair, which no text file, table or terminal can hold."""
_AN_HOUR = 3600.0
_AGAIN = "run the same command again"
ADDRESS = b"smmd_bench.address"
"""Key of a Parquet file's metadata that holds its stamp: see `smmd_bench.storage.current`."""
MADE_WITH = b"smmd_bench.made_with"
"""Key that holds, as JSON, the versions and the device that the file was made with."""


@contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; on success fsync it and rename it to `path`.

    On any error the temporary file is removed and `path` is untouched. A full disk raises a
    UserError that names the file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield temporary
        with temporary.open("rb") as stream:
            os.fsync(stream.fileno())
        temporary.replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        if (full := if_full(error, path)) is not None:
            raise full from error
        raise
    finally:
        temporary.unlink(missing_ok=True)


def remove_leftovers(folder: Path) -> None:
    """Remove what killed processes had begun to write below a folder: what nobody has touched for
    an hour."""
    now = time.time()
    for place, _, names in os.walk(folder):
        for name in names:
            file = Path(place, name)
            with suppress(FileNotFoundError):
                if name.endswith(".part") and now - file.stat().st_mtime > _AN_HOUR:
                    file.unlink()


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text atomically; half a surrogate pair becomes "?"."""
    with atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="replace")


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write JSON atomically, with a checksum as its last line; NaN is refused, so give None where a
    number does not exist."""
    content = {name: item for name, item in value.items() if name != _CHECK}
    text = json.dumps(content, indent=1, allow_nan=False)
    if content:
        body = text.removesuffix("\n}")
        text = f'{body},\n "{_CHECK}": "{_digest(body.encode())}"\n}}'
    write_text(path, f"{text}\n")


def write_json_if_new(path: Path, value: Mapping[str, Any]) -> None:
    """Write JSON atomically unless the file says the same."""
    if read_own_json(path) != json.loads(json.dumps(value)):
        write_json(path, value)


def read_json(path: Path) -> dict[str, Any] | None:
    """The JSON object of a file, in which half a surrogate pair becomes "?"; None where there is no
    file.

    Raises DamagedError where it is none, or not the one that `write_json` wrote.
    """
    try:
        content = path.read_bytes()
        value = json.loads(content)
        if _PAIR.search(content):
            plain = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
            value = json.loads(plain)
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError) as error:
        raise DamagedError(path, f"not valid JSON ({error})") from error
    if not isinstance(value, dict):
        raise DamagedError(path, "not a JSON object")
    last = _LAST_LINE.search(content)
    if last and _digest(content[: last.start()]) != last[1].decode():
        raise DamagedError(path, "not as it was written")
    value.pop(_CHECK, None)
    return value


def read_given_json(path: Path) -> dict[str, Any]:
    """The same for a file that the user has given, which nothing here can make again; empty where
    there is no file."""
    try:
        return read_json(path) or {}
    except DamagedError as error:
        raise UserError(f"{path} is {error.how}: save or copy it again.") from error


def read_own_json(path: Path) -> dict[str, Any] | None:
    """The same for a file that the run can make again: where it is damaged it is set aside, with a
    warning, and counts as absent."""
    try:
        return read_json(path)
    except DamagedError as error:
        set_aside(path, error)
        return None


def set_aside(path: Path, error: DamagedError) -> None:
    """Give a damaged file another name, so that it is made again; say so."""
    with suppress(OSError):
        path.rename(path.with_name(f".{path.name}.damaged"))
    _LOG.warning("%s is %s: it counts as absent.", path, error.how)


class DamagedError(UserError):
    """A file is not as it was written."""

    def __init__(
        self, path: Path, how: str, remedy: str = "delete it to have it made again"
    ) -> None:
        super().__init__(f"{path} is {how}: {remedy}.")
        self.how = how


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def write_parquet(
    path: Path, frame: pd.DataFrame, address: str = "", made_with: Mapping[str, str] | None = None
) -> None:
    """Write a frame to Parquet atomically; its stamp and what it was made with are metadata."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pandas(frame, preserve_index=False)
    more = {ADDRESS: address.encode()}
    if made_with is not None:
        more[MADE_WITH] = json.dumps(dict(made_with)).encode()
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), **more})
    with atomic(path) as temporary:
        pq.write_table(table, temporary, compression="zstd", write_page_checksum=True)


def read_parquet(
    path: Path, columns: Collection[str] | None = None, without: Collection[str] = ()
) -> pa.Table:
    """Those of these columns that a Parquet file has, verified. None: all, `without` some.

    Raises DamagedError where it is damaged; it is set aside then.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            names = file.schema_arrow.names
            wanted = [n for n in names if n not in without] if columns is None else columns
            return file.read(columns=[name for name in wanted if name in names])
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise _set_aside_if_damaged(path, error) from error


def _set_aside_if_damaged(path: Path, error: Exception) -> Exception:
    """What to raise for an error of Arrow, which has no number where the file is to blame."""
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno is not None):
        return error
    damaged = DamagedError(path, f"damaged ({reason_of(error)})", _AGAIN)
    set_aside(path, damaged)
    return damaged


def parquet_address(path: Path) -> str | None:
    """The stamp in a Parquet file's metadata; None where there is no file."""
    found = _metadata(path)
    return None if found is None else found.get(ADDRESS, "")


def parquet_made_with(path: Path) -> dict[str, str]:
    """What a Parquet file was made with; empty where that is not known."""
    return dict(json.loads((_metadata(path) or {}).get(MADE_WITH, "{}")))


@remembered
def _metadata(path: Path) -> dict[bytes, str] | None:
    """What this package writes of a Parquet file's metadata; None: the file is damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        metadata: dict[bytes, bytes] = pq.read_schema(path).metadata or {}
        return {key: metadata[key].decode() for key in (ADDRESS, MADE_WITH) if key in metadata}
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        found = _set_aside_if_damaged(path, error)
        if isinstance(found, DamagedError):
            return None
        raise
