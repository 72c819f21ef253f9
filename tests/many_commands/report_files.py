"""The bytes of the reports that a folder gives."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from smmd_bench.publishing.write_reports import write_reports
from smmd_bench.storage.files import read_json, write_json

PROVENANCE = ("name", "command", "created", "flags", "experiments", "versions", "hardware")


def report_files(folder: Path) -> dict[str, bytes]:
    """The bytes of the reports that a copy of the folder gives, without what is only history."""
    with _copied(folder) as copy:
        manifest = read_json(copy / "manifest.json") or {}
        manifest.pop("merged", None)
        constant = {key: [] if key in ("flags", "experiments") else {} for key in PROVENANCE}
        constant |= {"name": "run", "command": "command", "created": "2026-01-01T00:00:00+00:00"}
        write_json(copy / "manifest.json", {**manifest, **constant})
        write_reports(copy)
        files = files_in(copy / "reports")
        assert "failed.json" not in files, files["failed.json"].decode()
        return files


@contextlib.contextmanager
def _copied(folder: Path) -> Iterator[Path]:
    copy = folder.parent / "copy" / folder.name
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("reports", ".lock", "logs"))
    try:
        yield copy
    finally:
        shutil.rmtree(copy.parent)


def files_in(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, but for those whose name begins with a dot."""
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and not file.name.startswith(".")
    }
