"""What a report needs and a killed command may have left out."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from ..errors import UserError
from ..results.frames import read_run
from ..run.comparison import write_comparisons
from ..run.run_directory import RunDirectory


def compare_what_is_missing(folder: Path) -> None:
    """Compare the measured cells of a run that were not compared yet, or are others now.

    While another process works on the folder, it is left to that one.
    """
    run = read_run(folder)
    pairs = [[run.current(cell["address"]) for cell in pair] for pair in run.compared]
    if any(mine.comparison(other) is None for mine, other in pairs):
        with suppress(UserError), RunDirectory(folder).locked():
            write_comparisons(read_run(folder))
