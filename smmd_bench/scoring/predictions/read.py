"""The predictions of a file: of lm-eval, of a batch interface, or in columns."""

from __future__ import annotations

from pathlib import Path

from ...errors import UserError
from .batch import batch_prediction, is_batch_output
from .lm_eval import are_samples, sample_predictions
from .plain import plain_predictions
from .read_rows import read_rows
from .rows import Predictions, located


def read_predictions(
    path: Path, *, id_column: str | None = None, completion_column: str | None = None
) -> Predictions:
    """Read a file of completions; columns that are not named are found by their usual names.

    Raises UserError, which names the file, the line and the remedy, for anything that is wrong.
    """
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise UserError(f"The file of predictions {path} {what}: check --predictions.")
    form, rows = read_rows(path)
    if not rows:
        raise UserError(f"{path} is empty: give a file with one completion per example.")
    if id_column is None and completion_column is None:
        if are_samples(rows[0].values):
            return sample_predictions(path, rows)
        if is_batch_output(rows[0].values):
            found = []
            for row in rows:
                with located(path, row.place):
                    found.append(batch_prediction(row))
            return Predictions(path, "OpenAI batch output", found)
    return plain_predictions(path, form, rows, id_column, completion_column)
