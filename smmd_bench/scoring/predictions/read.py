"""A file of predictions, whatever its format: found by extension, and else by content."""

from __future__ import annotations

from pathlib import Path

from ...errors import UserError
from . import batch, lm_eval
from .json_rows import json_rows
from .plain import plain_predictions
from .rows import Predictions
from .table_rows import csv_rows, parquet_rows


def read_predictions(
    path: Path, *, id_column: str | None = None, completion_column: str | None = None
) -> Predictions:
    """Read a file of completions; columns that are named are taken, and else they are guessed.

    Raises UserError, which names the file, the line and the remedy, for anything that is not right.
    """
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise UserError(f"The file of predictions {path} {what}: check --predictions.")
    raw = path.read_bytes()
    if path.suffix.lower() in (".parquet", ".pq") or raw.startswith(b"PAR1"):
        form, rows = "Parquet", parquet_rows(path)
    else:
        text = _decoded(path, raw)
        if path.suffix.lower() in (".csv", ".tsv"):
            form, rows = "CSV", csv_rows(path, text)
        elif path.suffix.lower() in (".jsonl", ".ndjson", ".json") or text.lstrip()[:1] in "[{":
            form, rows = json_rows(path, text)
        else:
            raise UserError(
                f"{path} is of no known format: give JSON lines, a JSON list, CSV or Parquet, with "
                "the extension .jsonl, .json, .csv or .parquet."
            )
    if not rows:
        raise UserError(f"{path} is empty: give a file with one completion an example.")
    if id_column is None and completion_column is None:
        if lm_eval.are_samples(rows[0].values):
            return lm_eval.sample_predictions(path, rows)
        if batch.is_batch_output(rows[0].values):
            return batch.batch_predictions(path, rows)
    return plain_predictions(path, form, rows, id_column, completion_column)


def _decoded(path: Path, raw: bytes) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise UserError(f"{path}, line {line}: is not UTF-8: save the file as UTF-8.") from error
