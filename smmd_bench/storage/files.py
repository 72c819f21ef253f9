"""Files that are either whole or absent: temporary name, fsync, rename."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UserError

if TYPE_CHECKING:
    import pandas as pd

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
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise UserError(
                f"The disk is full while writing {path}: free some space and run the same command "
                "again; what is finished is kept."
            ) from error
        raise
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text atomically."""
    with atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write JSON atomically; NaN is refused, so give None where a number does not exist."""
    write_text(path, json.dumps(value, indent=1, allow_nan=False) + "\n")


def write_json_if_new(path: Path, value: Mapping[str, Any]) -> None:
    """Write JSON atomically unless the file says the same."""
    if read_json(path) != json.loads(json.dumps(value)):
        write_json(path, value)


def read_json(path: Path) -> dict[str, Any] | None:
    """The JSON object of a file; None where there is no file."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise UserError(
            f"{path} is not valid JSON ({error}): delete it to have it made again."
        ) from error
    return dict(value)


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
        pq.write_table(table, temporary, compression="zstd")


def parquet_address(path: Path) -> str | None:
    """The stamp in a Parquet file's metadata; None where there is no file."""
    return _metadata(path, ADDRESS)


def parquet_made_with(path: Path) -> dict[str, str]:
    """What a Parquet file was made with; empty where that is not known."""
    return dict(json.loads(_metadata(path, MADE_WITH) or "{}"))


def _metadata(path: Path, key: bytes) -> str | None:
    import pyarrow.parquet as pq

    if not path.exists():
        return None
    metadata: dict[bytes, bytes] = pq.read_schema(path).metadata or {}
    return metadata.get(key, b"").decode()
