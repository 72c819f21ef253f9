"""What `smmd-bench regress` left in a run, as frames: `read_run(path).regression`.

Columns of the frame:

    address, model, model_label, params, task, loss, seed, cell    which checkpoint; the task is
        missing for the base and for checkpoints from elsewhere, the cell too
    suite, shots, limit, engine, documents, truncated, context     how it was evaluated
    name, kind, metric, unit, value, stderr, n     a task or group of the suite, and its numbers
    against_loss, difference, low, high, b, c, p, left_out   the paired difference to another
        checkpoint, in points, over all questions of the suite but those that were left out, for the
        two were not asked the same there: in every row of the metric
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .files import read_json

if TYPE_CHECKING:
    import pandas as pd

    from .run import RunFrames

COLUMNS = (
    "address", "model", "model_label", "params", "task", "loss", "seed", "cell",
    "suite", "shots", "limit", "engine", "documents", "truncated", "context",
    "name", "kind", "metric", "unit", "value", "stderr", "n",
    "against_loss", "difference", "low", "high", "b", "c", "p", "left_out",
)  # fmt: skip
_FLOATS = ("value", "stderr", "difference", "low", "high", "p")
_INTEGERS = ("params", "shots", "limit", "b", "c", "left_out")
_DIFFERENCE = ("difference", "low", "high", "b", "c", "p", "left_out")


def regression_frame(run: RunFrames) -> pd.DataFrame:
    """One row a checkpoint, suite, task or group, and metric.

    Checkpoints stand in the order of the run, the base of a model first and those from elsewhere
    last; what was found of a cell that was trained anew since, or of another epoch than the one
    that is selected now, is left out.
    """
    import pandas as pd

    current = current_evaluations(run)
    names = {folder.name for folder, _ in current}
    rows = [row for folder, suite in current for row in _rows(folder, suite, names)]
    rows.sort(key=_order(run))
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    for column in _FLOATS:
        frame[column] = pd.to_numeric(frame[column]).astype("float64")
    for column in _INTEGERS:
        frame[column] = pd.to_numeric(frame[column]).astype("Int64")
    return frame


def current_evaluations(run: RunFrames) -> list[tuple[Path, dict[str, Any]]]:
    """The folder and suite.json of each whole evaluation of a checkpoint that is the run's now."""
    found = []
    for folder in sorted((run.path / "regression").glob("*")):
        suite = read_json(folder / "suite.json")
        whole = suite is not None and (folder / "results.json").is_file()
        if suite is not None and whole and _is_current(suite, run):
            found.append((folder, suite))
    return found


def regression_samples(run: Path, address: str) -> pd.DataFrame:
    """One row a document of an evaluation: subtask, doc_id, its hash, truncated, and metrics."""
    import pandas as pd

    return pd.read_parquet(run / "regression" / address / "samples.parquet")


def _rows(folder: Path, suite: Mapping[str, Any], current: set[str]) -> list[dict[str, Any]]:
    results = read_json(folder / "results.json") or {}
    comparison = read_json(folder / "comparison.json") or {}
    other = str(comparison.get("against"))
    if other not in current and (folder.parent / other).is_dir():  # trained anew since
        comparison = {}
    same = {name: suite.get(name) for name in COLUMNS if name in suite}
    same |= {name: results.get(name) for name in ("shots", "documents", "truncated", "context")}
    found = []
    for row in results["rows"]:
        compared = comparison.get("metrics", {}).get(row["metric"])
        difference = {name: (compared or {}).get(name) for name in _DIFFERENCE}
        against = comparison.get("against_loss") if compared else None
        found.append({**same, **row, "against_loss": against, **difference})
    return found


def _is_current(suite: Mapping[str, Any], run: RunFrames) -> bool:
    if suite["cell"] is None:
        identity = (run.manifest.get("models") or {}).get(suite["model"])
        return suite["kind"] != "base" or identity in (None, suite["identity"].get("base"))
    known = run.cells["address"] == suite["cell"]
    selection = read_json(run.path / "cells" / suite["cell"] / "selection.json") or {}
    return bool(known.any()) and selection.get("best_epoch") == suite["epoch"]


def _order(run: RunFrames) -> Any:
    """The key by which rows are sorted: the sort leaves those of an evaluation as they are."""
    ranks = {
        name: {value: at for at, value in enumerate(run.cells[name].cat.categories)}
        for name in ("model", "task", "loss")
    }

    def rank(name: str, value: Any, missing: int) -> tuple[int, str]:
        return ranks[name].get(value, missing), str(value)

    def key(row: Mapping[str, Any]) -> Sequence[Any]:
        elsewhere = row["cell"] is None and row["loss"] != "base"
        return (
            rank("model", row["model"], len(ranks["model"])),
            row["suite"],
            row["limit"] is not None,
            -(row["limit"] or 0),
            -1 if row["shots"] is None else row["shots"],
            row["engine"],
            elsewhere,
            rank("task", row["task"], -1),
            rank("loss", row["loss"], -1 if row["loss"] == "base" else len(ranks["loss"])),
            row["seed"],
        )

    return key
