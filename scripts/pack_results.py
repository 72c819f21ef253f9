"""Pack the results of a finished run into a small archive, from which its reports can be made.

    python scripts/pack_results.py runs/NAME experiments/FOLDER/NAME.tar.xz

Weights, canaries, logs and reports are left out, and digit probes have no rows: their reports skip.
Parquet files are written without compression, so that xz finds what the cells have in common: half
of the size. `tar xJf` unpacks it.
"""

from __future__ import annotations

import sys
import tarfile
from io import BytesIO
from pathlib import Path

import pyarrow.parquet as pq

from smmd_bench.storage.cell import FOLDERS

KEPT = (".json", ".parquet")
EMPTIED = "probes.parquet"
"""Most of a run; a cell counts as decoded with the file alone."""


def pack(run: Path, archive: Path) -> None:
    """Write the results of `run` to `archive`, below its name, byte by byte the same."""
    folders = ("failed/*", *(f"{stage}/[!.]*/*" for stage in FOLDERS))
    files = [
        run / "manifest.json",
        *(file for folder in folders for file in run.glob(folder)),
    ]
    files = [f for f in files if f.suffix in KEPT and f.name != "canaries.json"]
    with tarfile.open(archive, "w:xz", preset=9) as tar:
        for file in sorted(files, key=lambda f: (f.name, f)):  # like beside like
            content = (
                _uncompressed(file) if file.suffix == ".parquet" else file.read_bytes()
            )
            entry = tarfile.TarInfo(f"{run.name}/{file.relative_to(run).as_posix()}")
            entry.size, entry.mode = len(content), 0o644
            tar.addfile(entry, BytesIO(content))


def _uncompressed(file: Path) -> bytes:
    """The same table."""
    table, stream = pq.read_table(file), BytesIO()
    table = table.slice(0, 0) if file.name == EMPTIED else table
    pq.write_table(table, stream, compression="none", write_page_checksum=True)
    return stream.getvalue()


if __name__ == "__main__":
    run, archive = map(Path, sys.argv[1:])
    pack(run, archive)
    print(f"{archive}: {archive.stat().st_size / 1e6:.1f} MB")
