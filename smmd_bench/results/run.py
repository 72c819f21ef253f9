"""Reading a run folder into pandas, lazily: `read_run(path).metrics` and its siblings.

Nothing is read before it is asked for, and the large files (completions, scores, probes, training
logs) can be read by column and by cell with `RunFrames.read`, so that a report over 200 cells of
10,000 completions touches megabytes and not gigabytes. Importing this module brings in neither
pandas nor pyarrow nor a plotting library.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..errors import UserError
from .files import read_json
from .order import in_run_order

if TYPE_CHECKING:
    import pandas as pd

CellFile = Literal["completions", "scores", "probes", "train_log"]
IDENTITY = ("address", "model", "task", "loss", "seed")
"""The columns that every frame of a run starts with: which cell a row is of."""

_CELL_COLUMNS = (
    "address", "model", "model_label", "task", "task_name", "loss", "loss_name", "seed", "params",
    "trained_on", "status", "stage", "error", "recipe",
)  # fmt: skip
_METRIC_COLUMNS = (*IDENTITY, "metric", "value", "low", "high", "n")
_COMPARISON_COLUMNS = (
    *IDENTITY, "against", "against_loss", "metric", "difference", "low", "high", "n", "b", "c", "p",
)  # fmt: skip


@dataclass(frozen=True)
class RunFrames:
    """A run as frames; make one with `read_run`.

    In every frame the rows stand in the order of the experiment (models, tasks, then losses with
    the untuned base and `ce` first, seeds), and model, task and loss are categoricals whose
    categories have that order, so that a `groupby` or a `pivot` keeps it.
    """

    path: Path

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """What `manifest.json` says: name, experiment, versions, created, command."""
        return read_json(self.path / "manifest.json") or {}

    @cached_property
    def cells(self) -> pd.DataFrame:
        """One row a cell: what it is, and its status: "done", "failed", "skipped" or "pending".

        A failed cell has its `stage` and `error`, a skipped one (its loss cannot apply) the reason
        as `error`; a cell without current metrics that is neither is pending. `params` is a
        nullable integer, `recipe` a dictionary, `trained_on` the task that a test of transfer was
        trained on.
        """
        import pandas as pd

        found = (self._cell(folder) for folder in sorted((self.path / "cells").glob("*")))
        rows = in_run_order([row for row in found if row is not None], self.manifest)
        frame = pd.DataFrame(rows, columns=list(_CELL_COLUMNS))
        frame["seed"] = frame["seed"].astype("int64")
        frame["params"] = frame["params"].astype("Int64")
        for column in ("stage", "error", "trained_on"):
            frame[column] = frame[column].astype("str")
        for column in ("model", "task", "loss"):
            frame[column] = pd.Categorical(frame[column], categories=[*frame[column].unique()])
        return frame

    @cached_property
    def metrics(self) -> pd.DataFrame:
        """One row a cell and metric: value, the bounds of its 95 % interval, and n."""
        rows = [
            {**identity, "metric": metric, **values}
            for identity, content in self._json("metrics.json")
            for metric, values in content["metrics"].items()
        ]
        return self._frame(rows, _METRIC_COLUMNS, ("value", "low", "high"))

    @cached_property
    def comparisons(self) -> pd.DataFrame:
        """One row a compared cell and metric: the difference to the cell `against`.

        `b`, `c` and `p` are those of McNemar's exact test, the same in every row of a cell; missing
        where the answers of a task are no numbers.
        """
        rows = [
            {
                **identity,
                "against": content["against"],
                "against_loss": content["against_loss"],
                "metric": metric,
                **values,
                **(content["mcnemar"] or {}),
            }
            for identity, content in self._json("comparison.json")
            for metric, values in content["metrics"].items()
        ]
        return self._frame(rows, _COMPARISON_COLUMNS, ("difference", "low", "high", "p"))

    @cached_property
    def selection(self) -> pd.DataFrame:
        """One row a cell and epoch: the validation metrics, and whether it was `selected`.

        `selection_metric` names the metric that chose.
        """
        rows = [
            {
                **identity,
                "selection_metric": content["metric"],
                **epoch,
                "selected": epoch["epoch"] == content["best_epoch"],
            }
            for identity, content in self._json("selection.json")
            for epoch in content["epochs"]
        ]
        columns = [*IDENTITY, "selection_metric", "epoch", "n", "selected"]
        extra = [c for c in dict.fromkeys(key for row in rows for key in row) if c not in columns]
        return self._frame(rows, (*columns, *extra), extra)

    @cached_property
    def regression(self) -> pd.DataFrame:
        """What `smmd-bench regress` found: one row a checkpoint, suite, task or group, and metric.

        `smmd_bench.results.regression` says the columns.
        """
        from .regression import regression_frame

        return regression_frame(self)

    @cached_property
    def completions(self) -> pd.DataFrame:
        """Every completion of every measured cell, with its scores."""
        from .cell_files import completions_with_scores

        return self._concatenated(self._done(), completions_with_scores)

    @cached_property
    def probes(self) -> pd.DataFrame:
        """The digit probes, without the full vectors: `read("probes", columns=["vector"])`."""
        return self.read("probes")

    @cached_property
    def train_log(self) -> pd.DataFrame:
        """The training log: one row an optimiser step; `loss_value` is the total."""
        return self.read("train_log")

    def read(
        self,
        file: CellFile,
        columns: Sequence[str] | None = None,
        addresses: Iterable[str] | None = None,
    ) -> pd.DataFrame:
        """The rows of one kind of Parquet file, over all cells that have it.

        `columns` (those that a file does not have are missing values) and `addresses` restrict
        what is read at all. Scores are read of cells that are done, the others of any cell.
        """
        from .cell_files import columns_of

        cells = self._done() if file == "scores" else self.cells
        if addresses is not None:
            cells = cells[cells["address"].isin(list(addresses))]
        return self._concatenated(
            cells, lambda folder: columns_of(folder / f"{file}.parquet", columns)
        )

    def only(self, cells: pd.DataFrame) -> RunFrames:
        """The run as if it had these of its cells alone; categories that none has are dropped."""
        kept = cells.copy()
        for column in ("model", "task", "loss"):
            kept[column] = kept[column].cat.remove_unused_categories()
        part = RunFrames(self.path)
        part.__dict__["cells"] = kept  # where cached_property looks
        return part

    def _done(self) -> pd.DataFrame:
        return self.cells[self.cells["status"] == "done"]

    def _concatenated(self, cells: pd.DataFrame, table_of: Any) -> pd.DataFrame:
        from .cell_files import concatenated

        tables = [table_of(self.path / "cells" / address) for address in cells["address"]]
        return concatenated(cells[list(IDENTITY)], tables)

    def _cell(self, folder: Path) -> dict[str, Any] | None:
        cell = read_json(folder / "cell.json") if folder.is_dir() else None
        if cell is None:
            return None
        failure = read_json(folder / "FAILED.json") or {}
        status = "pending"
        if failure:
            status = "skipped" if failure.get("skipped") else "failed"
        if _is_current(read_json(folder / "metrics.json"), cell):
            status, failure = "done", {}
        known = {column: cell.get(column) for column in _CELL_COLUMNS}
        return {
            **known,
            "address": folder.name,
            "model_label": cell.get("model_label") or cell["model"],
            "recipe": cell.get("recipe") or {},
            "status": status,
            "stage": failure.get("stage"),
            "error": failure.get("error"),
        }

    def _json(self, name: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        found = []
        for cell in self.cells.to_dict("records"):
            content = read_json(self.path / "cells" / cell["address"] / name)
            if content and (cell["status"] == "done" or name == "selection.json"):
                found.append(({str(key): cell[key] for key in IDENTITY}, content))
        return found

    def _frame(
        self, rows: list[dict[str, Any]], columns: Sequence[str], floats: Sequence[str]
    ) -> pd.DataFrame:
        import pandas as pd

        frame = pd.DataFrame(rows, columns=list(columns))
        for column in floats:
            frame[column] = pd.to_numeric(frame[column]).astype("float64")
        for column in ("model", "task", "loss"):
            frame[column] = pd.Categorical(
                frame[column], categories=self.cells[column].cat.categories
            )
        return frame


def read_run(path: str | Path) -> RunFrames:
    """The frames of a run folder.

    Raises UserError if the folder is no run.
    """
    path = Path(path)
    if not (path / "manifest.json").is_file():
        what = "does not exist" if not path.exists() else "has no manifest.json"
        raise UserError(
            f"{path} is no run folder: it {what}. Give the folder that `smmd-bench train-eval` "
            "names when it starts, such as runs/NAME."
        )
    return RunFrames(path)


def _is_current(metrics: Mapping[str, Any] | None, cell: Mapping[str, Any]) -> bool:
    """Whether metrics were measured under the address that the cell has now."""
    if metrics is None:
        return False
    wanted = (cell.get("addresses") or {}).get("measure")
    return wanted is None or metrics.get("address") in (None, wanted, cell.get("address"))
