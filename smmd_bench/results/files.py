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
"""Key of a Parquet file's schema metadata that holds the content address of its stage."""


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


def write_parquet(path: Path, frame: pd.DataFrame, address: str = "") -> None:
    """Write a frame to Parquet atomically, with the address of its stage in the metadata."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pandas(frame, preserve_index=False)
    table = table.replace_schema_metadata(
        {**(table.schema.metadata or {}), ADDRESS: address.encode()}
    )
    with atomic(path) as temporary:
        pq.write_table(table, temporary, compression="zstd")


def parquet_address(path: Path) -> str | None:
    """The stage address in a Parquet file's metadata; None where there is no file."""
    import pyarrow.parquet as pq

    if not path.exists():
        return None
    metadata: dict[bytes, bytes] = pq.read_schema(path).metadata or {}
    return metadata.get(ADDRESS, b"").decode()
