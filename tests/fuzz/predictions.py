"""Files of completions, in each format, matched to examples and scored."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from smmd_bench.contracts import Example
from smmd_bench.errors import UserError
from smmd_bench.scoring.predictions.match import match
from smmd_bench.scoring.predictions.read import read_predictions
from smmd_bench.scoring.score import score_frame
from smmd_bench.storage.data_files import read_rows
from smmd_bench.storage.files import write_parquet

from .settings import LONGEST_ERROR, folder
from .texts import brief_errors, task_of_numbers

N = 4


def from_json(data: bytes) -> None:
    """JSON lines, a JSON list, samples of lm-eval, output of a batch interface."""
    _read(folder() / "theirs.json", data)


def from_csv(data: bytes) -> None:
    """Columns by commas, and the same bytes by tabs."""
    for name in ("theirs.csv", "theirs.tsv"):
        try:
            _read(folder() / name, data)
        except UserError:
            continue


def from_parquet(data: bytes) -> None:
    """Parquet."""
    _read(folder() / "theirs.parquet", data)


def from_anything(data: bytes) -> None:
    """A file whose name says nothing."""
    _read(folder() / "theirs", data)


def data(data: bytes) -> None:
    """Rows of a task's data, in each format."""
    for name in ("data.jsonl", "data.json", "data.parquet"):
        file = folder() / name
        file.write_bytes(data)
        with suppress(UserError), brief_errors(LONGEST_ERROR + 10 * len(data), str(file)):
            rows = read_rows(file, ("question",))
            assert all(row["question"] is not None for row in rows)


def _read(file: Path, data: bytes) -> None:
    file.write_bytes(data)
    with brief_errors(LONGEST_ERROR + 10 * len(data), str(file)):
        found = read_predictions(file)
    assert repr(read_predictions(file)) == repr(found)
    assert found.rows
    for row in found.rows:
        row.completion.encode()
        assert row.id is None or type(row.id) in (str, int)
    task = task_of_numbers()
    matched = match(found, task, _examples(), "the examples", partial=True)
    assert str(matched)
    frame = matched.frame(_examples(), sorted(matched.found))
    write_parquet(folder() / "completions.parquet", frame)
    assert len(score_frame(task, frame)) == len(matched.found)


@cache
def _examples() -> Sequence[Example]:
    return list(task_of_numbers().examples("test", 0, N))
