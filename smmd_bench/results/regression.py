"""What `smmd-bench regress` left in a run, as a frame: `read_run(path).regression`.

One row a checkpoint, suite, task or group, and metric: which checkpoint (task and cell are missing
for the base), how it was evaluated, its numbers, and the paired difference to the checkpoint
`against_loss`, in points, over all questions of the suite but those that the two were not asked
alike (left_out): the same in every row of the metric.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..storage.addresses import address
from ..storage.files import read_json, read_own_json, read_parquet
from .baselines import REFERENCE

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
_DIFFERENCE = ("difference", "low", "high", "b", "c", "p", "left_out")
_TYPES = {
    **dict.fromkeys(("value", "stderr", "difference", "low", "high", "p"), "float64"),
    **dict.fromkeys(("params", "shots", "limit", "b", "c", "left_out"), "Int64"),
}


def regression_frame(run: Run) -> pd.DataFrame:
    """The frame. Checkpoints stand in the order of the run, the base of a model first.

    Evaluations of other weights than those that a cell is tested with now are left out.
    """
    import pandas as pd

    current = current_evaluations(run)
    against = {mine["address"]: other for mine, other in compared_evaluations(current)}
    rows = []
    for folder, suite in current:
        rows += _rows(folder, suite, against.get(folder.name))

    models = {model: at for at, model in enumerate(run.cells["model"].cat.categories)}
    cells = {address: at for at, address in enumerate(run.cells["address"])}

    def find_place(row: dict[str, Any]) -> tuple[Any, ...]:
        return (
            models.get(row["model"], math.inf),
            row["suite"],
            -(row["limit"] or math.inf),
            -1 if row["shots"] is None else row["shots"],
            row["engine"],
            cells.get(row["cell"], -1),
        )

    # The sort is stable: it leaves the rows of an evaluation as they are.
    rows.sort(key=find_place)
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(_TYPES)


def current_evaluations(run: Run) -> list[tuple[Path, dict[str, Any]]]:
    """The folder and suite.json of each whole evaluation of a checkpoint that is the run's now."""
    evaluations = []
    for file in sorted((run.path / "regression").glob("[!.]*/results.json")):
        folder = file.parent
        # A file that could not be read has had its whole folder set aside.
        if folder.suffix == ".damaged":
            continue
        suite = read_json(folder / "suite.json")
        if suite and _is_current(suite, run):
            evaluations.append((folder, suite))
    return evaluations


def compared_evaluations(
    evaluations: Sequence[tuple[Path, Mapping[str, Any]]],
) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Each evaluation that has one to be compared with, and that one: their suite.json.

    A loss is compared with cross-entropy of the same task, seed and setting, or else the untuned
    base; cross-entropy with the base.
    """
    groups: dict[str, list[dict[str, Any]]] = {}
    for folder, suite in evaluations:
        # As text, since a suite's data and versions are dictionaries.
        key = json.dumps([suite.get(name) for name in _SAME], sort_keys=True)
        groups.setdefault(key, []).append({**suite, "address": folder.name})

    pairs = []
    for group in groups.values():
        for mine in group:
            other = _find_opponent(mine, group)
            if other is not None:
                pairs.append((mine, other))
    return pairs


def comparison_folder(
    run: Path, mine: Mapping[str, Any], other: Mapping[str, Any]
) -> Path:
    """The folder of how an evaluation differs from another one."""
    pair = {"code": VERSION, "mine": mine["address"], "other": other["address"]}
    return run / "compare" / address(pair)


def _find_opponent(
    mine: Mapping[str, Any], others: Sequence[dict[str, Any]]
) -> dict[str, Any] | None:
    # The base is what all others come from, and is compared with none.
    if mine["cell"] is None:
        return None

    base = None
    wanted = (REFERENCE, mine["task"], mine["seed"])
    for other in others:
        if other["cell"] is None:
            base = base or other
        # Cross-entropy would find itself here.
        elif mine["loss"] != REFERENCE:
            key = (other["loss"], other["task"], other["seed"])
            if key == wanted:
                return other
    return base


def regression_samples(run: Path, name: str) -> pd.DataFrame:
    """One row a document of an evaluation: subtask, doc_id, its hash, truncated, and metrics."""
    file = run / "regression" / name / "samples.parquet"
    samples: pd.DataFrame = read_parquet(file).to_pandas()
    return samples


def _rows(
    folder: Path, suite: Mapping[str, Any], other: Mapping[str, Any] | None
) -> list[dict[str, Any]]:
    results = read_json(folder / "results.json") or {}
    differences = {}
    if other is not None:
        place = comparison_folder(folder.parents[1], {"address": folder.name}, other)
        content = read_own_json(place / "comparison.json") or {}
        differences = content.get("metrics", {})

    # What lm-eval did counts, which need not be what the suite asked for.
    shared = {name: suite.get(name) for name in COLUMNS}
    shared["address"] = folder.name
    for name in ("shots", "documents", "truncated", "context"):
        shared[name] = results.get(name)

    rows = []
    for row in results["rows"]:
        difference = differences.get(row["metric"]) or {}
        compared = {name: difference.get(name) for name in _DIFFERENCE}
        # Not every metric of an evaluation has values to pair.
        if other is not None and difference:
            compared["against_loss"] = other["loss"]
        rows.append({**shared, **row, **compared})
    return rows


def _is_current(suite: Mapping[str, Any], run: Run) -> bool:
    # Of a base there is no cell to ask: its weights are those that the manifest names, if any.
    if suite["cell"] is None:
        identity = (run.manifest.get("models") or {}).get(suite["model"])
        return identity in (None, suite["identity"].get("base"))
    if not (run.cells["address"] == suite["cell"]).any():
        return False
    tested = run.current(suite["cell"]).tested
    return tested is not None and tested.digest == suite["identity"]["weights"]
