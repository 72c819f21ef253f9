"""The targets: each takes the bytes of a stranger and calls what reads them.

A UserError is an answer. Any other exception, and a property that does not hold, escapes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

from smmd_bench.errors import UserError

from . import outputs, predictions, runs, settings, texts

Target = Callable[[bytes], None]

TARGETS: Mapping[str, Target] = {
    "answers": texts.answers,
    "measures": texts.measures,
    "specs": texts.specs,
    "experiment": settings.experiment,
    "card": settings.card,
    "predictions_json": predictions.from_json,
    "predictions_csv": predictions.from_csv,
    "predictions_parquet": predictions.from_parquet,
    "predictions_any": predictions.from_anything,
    "data": predictions.data,
    "manifest": runs.manifest,
    "cell": runs.cell,
    "tables": outputs.tables,
    "page": outputs.page,
}


def call(name: str, data: bytes) -> None:
    """Give a target its input."""
    with suppress(UserError):
        TARGETS[name](data)
