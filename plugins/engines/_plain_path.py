"""A path that vLLM can look below: it reads `*`, `?` and `[` in a folder's name as a pattern."""

from __future__ import annotations

import glob
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def plain_path(folder: Path) -> Iterator[Path]:
    """The folder, or where its path is a pattern to `glob`, a link to it that is none."""
    if not glob.has_magic(str(folder)):
        yield folder
        return
    with tempfile.TemporaryDirectory() as place:
        link = Path(place) / "checkpoint"
        link.symlink_to(folder.resolve(), target_is_directory=True)
        yield link
