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

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..storage.addresses import address
from ..storage.cell import BASE
from ..storage.files import read_json, read_own_json, read_parquet
from .opponents import REFERENCE

if TYPE_CHECKING:
    import pandas as pd

    from ..contracts import Run

COLUMNS = (
    "address", "model", "model_label", "params", "task", "loss", "seed", "cell",
    "suite", "shots", "limit", "engine", "documents", "truncated", "context",
    "name", "kind", "metric", "unit", "value", "stderr", "n",
    "against_loss", "difference", "low", "high", "b", "c", "p", "left_out",
)  # fmt: skip
VERSION = 2
"""Of what comparison.json says."""
_SAME = (
    "model", "dtype", "suite", "suite_version", "shots", "data", "limit", "engine", "versions",
)  # fmt: skip
_FLOATS = ("value", "stderr", "difference", "low", "high", "p")
_INTEGERS = ("params", "shots", "limit", "b", "c", "left_out")
_DIFFERENCE = ("difference", "low", "high", "b", "c", "p", "left_out")


def regression_frame(run: Run) -> pd.DataFrame:
    """One row a checkpoint, suite, task or group, and metric.

    Checkpoints stand in the order of the run, the base of a model first and those from elsewhere
    last. Evaluations of other weights than those that a cell is tested with now are left out.
    """
    import pandas as pd

    current = current_evaluations(run)
    against = {mine["address"]: other for mine, other in compared_evaluations(current)}
    rows = [
        row for folder, suite in current for row in _rows(folder, suite, against.get(folder.name))
    ]
    rows.sort(key=_order(run))
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    for column in _FLOATS:
        frame[column] = pd.to_numeric(frame[column]).astype("float64")
    for column in _INTEGERS:
        frame[column] = pd.to_numeric(frame[column]).astype("Int64")
    return frame


def current_evaluations(run: Run) -> list[tuple[Path, dict[str, Any]]]:
    """The folder and suite.json of each whole evaluation of a checkpoint that is the run's now."""
    folders = [f.parent for f in sorted((run.path / "regression").glob("*/results.json"))]
    found = [(folder, read_json(folder / "suite.json")) for folder in folders]
    return [(folder, suite) for folder, suite in found if suite and _is_current(suite, run)]


def compared_evaluations(
    evaluations: Sequence[tuple[Path, Mapping[str, Any]]],
) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Each evaluation that has one to be compared with, and that one: their suite.json.

    A loss is compared with cross-entropy of the same task, seed and setting, or else the untuned
    base; cross-entropy and checkpoints from elsewhere with the base.
    """
    groups: dict[str, list[dict[str, Any]]] = {}
    for folder, suite in evaluations:
        key = json.dumps([suite.get(name) for name in _SAME], sort_keys=True)
        groups.setdefault(key, []).append({**suite, "address": folder.name})
    pairs = ((mine, _opponent(mine, group)) for group in groups.values() for mine in group)
    return [(mine, other) for mine, other in pairs if other is not None]


def comparison_folder(run: Path, mine: Mapping[str, Any], other: Mapping[str, Any]) -> Path:
    """The folder of how an evaluation differs from another one."""
    pair = {"code": VERSION, "mine": mine["address"], "other": other["address"]}
    return run / "compare" / address(pair)


def _opponent(mine: Mapping[str, Any], others: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    if mine["kind"] == "base":
        return None
    ranked = [other for other in others if other["kind"] == "base"]
    if mine["loss"] != REFERENCE and mine["cell"] is not None:
        wanted = REFERENCE, mine["task"], mine["seed"]
        trained = [other for other in others if other["cell"] is not None]
        same = [t for t in trained if (t["loss"], t["task"], t["seed"]) == wanted]
        ranked = same + ranked
    return ranked[0] if ranked else None


def regression_samples(run: Path, name: str) -> pd.DataFrame:
    """One row a document of an evaluation: subtask, doc_id, its hash, truncated, and metrics."""

    file = run / "regression" / name / "samples.parquet"
    samples: pd.DataFrame = read_parquet(file).to_pandas()
    return samples


def _rows(
    folder: Path, suite: Mapping[str, Any], other: Mapping[str, Any] | None
) -> list[dict[str, Any]]:
    results = read_json(folder / "results.json") or {}
    mine, comparison = {**suite, "address": folder.name}, {}
    if other is not None:
        place = comparison_folder(folder.parents[1], mine, other)
        comparison = read_own_json(place / "comparison.json") or {}
    same = {name: suite.get(name) for name in COLUMNS if name in suite}
    same |= {name: results.get(name) for name in ("shots", "documents", "truncated", "context")}
    found = []
    for row in results["rows"]:
        compared = comparison.get("metrics", {}).get(row["metric"])
        difference = {name: (compared or {}).get(name) for name in _DIFFERENCE}
        against = other["loss"] if compared and other is not None else None
        found.append({**same, **row, "against_loss": against, **difference})
    return found


def _is_current(suite: Mapping[str, Any], run: Run) -> bool:
    if suite["cell"] is None:
        identity = (run.manifest.get("models") or {}).get(suite["model"])
        return suite["kind"] != "base" or identity in (None, suite["identity"].get("base"))
    if not (run.cells["address"] == suite["cell"]).any():
        return False
    tested = run.current(suite["cell"]).tested
    return tested is not None and tested.digest == suite["identity"]["weights"]


def _order(run: Run) -> Any:
    """The key by which rows are sorted: the sort leaves those of an evaluation as they are."""
    ranks = {
        name: {value: at for at, value in enumerate(run.cells[name].cat.categories)}
        for name in ("model", "task", "loss")
    }

    def rank(name: str, row: Mapping[str, Any], missing: float = math.inf) -> tuple[float, str]:
        return ranks[name].get(row[name], missing), str(row[name])

    def key(row: Mapping[str, Any]) -> Sequence[Any]:
        base = row["loss"] == BASE
        return (
            rank("model", row),
            row["suite"],
            -(row["limit"] or math.inf),
            -1 if row["shots"] is None else row["shots"],
            row["engine"],
            row["cell"] is None and not base,  # from elsewhere
            rank("task", row, -1),
            rank("loss", row, -1 if base else math.inf),
            row["seed"],
        )

    return key
