"""Reading a run folder into pandas, lazily: `read_run(path).metrics` and its siblings.

Only what `smmd_bench.storage.cell` finds is shown. The large files (completions, scores,
probes, training logs) can be read by column and by cell with `RunFrames.read`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UserError
from ..storage.cell import CellFile, StoredCell, stored_cell
from ..storage.manifest import read_manifest
from .opponents import Compared, all_compared
from .summary import (
    CELL_COLUMNS,
    IDENTITY,
    METRIC_COLUMNS,
    TUNING_COLUMNS,
    cell_row,
    in_run_order,
    tuning_rows,
    what_the_cells_say,
)

if TYPE_CHECKING:
    import pandas as pd

_NUMBERS = ("difference", "low", "high", "b", "c", "p")


@dataclass(frozen=True)
class RunFrames:
    """A run as frames; make one with `read_run`.

    In every frame the rows stand in the order of the experiment (models, tasks, then losses with
    the untuned base and `ce` first, seeds); so do the categories of model, task and loss, so that
    a `groupby` or a `pivot` keeps it.
    """

    path: Path

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """What `manifest.json` says: name, experiment, versions, created, command, cells; and what
        these say together: models, data, generation, plugins."""
        content = read_manifest(self.path)
        return {**what_the_cells_say(content.get("cells") or ()), **content}

    @cached_property
    def cells(self) -> pd.DataFrame:
        """One row a cell: what it is, and its status: "done", "failed", "skipped" or "pending".

        A failed cell has its `stage` and `error`, a skipped one (its loss cannot apply) the reason
        as `error`. `params` is a nullable integer, `recipe` a dictionary, `trained_on` the task of
        a test of transfer, `sizes` the numbers of examples that are there, by split.
        """
        import pandas as pd

        described = [(said, self.current(address)) for address, said in self._described.items()]
        rows = in_run_order([cell_row(*pair) for pair in described], self.manifest)
        frame = pd.DataFrame(rows, columns=list(CELL_COLUMNS))
        frame["seed"] = frame["seed"].astype("int64")
        frame["params"] = frame["params"].astype("Int64")
        for column in ("stage", "error", "trained_on"):
            frame[column] = frame[column].astype("str")
        for column in ("model", "task", "loss"):
            frame[column] = pd.Categorical(frame[column], categories=[*frame[column].unique()])
        return frame

    def current(self, address: str) -> StoredCell:
        """The folders of a cell."""
        return self._current[address]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """What the manifest says of each row of the tables, in no order."""
        return [*self._described.values()]

    def described(self, address: str) -> dict[str, Any]:
        """What the manifest says of a cell."""
        return self._described[address]

    @cached_property
    def metrics(self) -> pd.DataFrame:
        """One row a cell and metric: value, the bounds of its 95 % interval, and n."""
        rows = [
            {**identity, "metric": metric, **values}
            for identity, cell in self._with_files(self._done())
            for metric, values in (cell.metrics or {})["metrics"].items()
        ]
        return self._frame(rows, (*IDENTITY, *METRIC_COLUMNS), ("value", "low", "high"))

    @cached_property
    def comparisons(self) -> pd.DataFrame:
        """One row a compared cell and metric: the difference to the cell `against`.

        `b`, `c` and `p` are those of McNemar's exact test where the metric is a share of the
        examples; of another metric p is by the bootstrap. `jackknife` holds the pseudo-values of
        `smmd_bench.scoring.crossed`.
        """
        return self._compared_by("comparison")

    @cached_property
    def noise(self) -> pd.DataFrame:
        """The same of cross-entropy against cross-entropy of another seed, in disjoint pairs."""
        return self._compared_by("noise")

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
            for identity, cell in self._with_files(self.cells)
            if (content := cell.selection) is not None
            for epoch in content["epochs"]
        ]
        columns = [*IDENTITY, "selection_metric", "epoch", "n", "selected"]
        extra = [c for c in dict.fromkeys(key for row in rows for key in row) if c not in columns]
        return self._frame(rows, (*columns, *extra), extra)

    @cached_property
    def tuning(self) -> pd.DataFrame:
        """One row a tuned cell and configuration: see `tuning_rows` of `summary`."""
        rows = [
            {**identity, **row}
            for identity, cell in self._with_files(self.cells)
            for row in tuning_rows(self.described(identity["address"]), cell)
        ]
        frame = self._frame(rows, (*IDENTITY, *TUNING_COLUMNS), ("value", "low", "high"))
        return frame.astype({"epoch": "Int64", "n": "Int64", "chosen": "bool"})

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

        `columns` (missing values where a file lacks one) and `addresses` restrict what is read.
        """
        from .cell_files import columns_of

        return self._concatenated(
            self.having(file, addresses), lambda cell: columns_of(cell.place(file), columns)
        )

    def having(self, file: CellFile, addresses: Iterable[str] | None = None) -> pd.DataFrame:
        """The rows of `cells`, or of these of them, of which `read` has this kind of file."""
        cells = self.cells if file == "train_log" else self._done()
        if addresses is not None:
            cells = cells[cells["address"].isin(list(addresses))]
        kept = [address for address in cells["address"] if self.current(address).has(file)]
        return cells[cells["address"].isin(kept)]

    def only(self, cells: pd.DataFrame) -> RunFrames:
        """The run as if it had these of its cells alone; categories that none has are dropped."""
        kept = cells.copy()
        for column in ("model", "task", "loss"):
            kept[column] = kept[column].cat.remove_unused_categories()
        part = RunFrames(self.path)
        shared = {name: getattr(self, name) for name in ("manifest", "_current", "compared")}
        part.__dict__.update(shared, cells=kept)  # where cached_property looks
        return part

    def _done(self) -> pd.DataFrame:
        return self.cells[self.cells["status"] == "done"]

    def _concatenated(self, cells: pd.DataFrame, table_of: Any) -> pd.DataFrame:
        from .cell_files import concatenated

        tables = [table_of(self.current(address)) for address in cells["address"]]
        return concatenated(cells[list(IDENTITY)], tables)

    @cached_property
    def _described(self) -> dict[str, dict[str, Any]]:
        """What the manifest says of each cell, by address."""
        return {str(cell["address"]): cell for cell in self.manifest.get("cells") or ()}

    @cached_property
    def _current(self) -> dict[str, StoredCell]:
        return {at: stored_cell(self.path, content) for at, content in self._described.items()}

    @cached_property
    def compared(self) -> list[Compared]:
        """The pairs of measured cells that are compared."""
        return all_compared(self.measured)

    @property
    def measured(self) -> list[dict[str, Any]]:
        """What the manifest says of each measured cell."""
        return [content for a, content in self._described.items() if self.current(a).metrics]

    def _compared_by(self, kind: str) -> pd.DataFrame:
        against = {pair.mine["address"]: pair.other for pair in self.compared if pair.kind == kind}
        rows = [
            {**identity, "against": other["address"], "against_loss": other["loss"],
             "metric": metric, **values}
            for identity, cell in self._with_files(self._done())
            if (other := against.get(identity["address"])) is not None
            and (content := cell.comparison(self.current(other["address"]))) is not None
            for metric, values in content["metrics"].items()
        ]  # fmt: skip
        columns = ("against", "against_loss", "metric", *_NUMBERS[:3], "n", *_NUMBERS[3:])
        return self._frame(rows, (*IDENTITY, *columns, "jackknife"), _NUMBERS)

    def _with_files(self, cells: pd.DataFrame) -> list[tuple[dict[str, Any], StoredCell]]:
        rows: list[dict[Any, Any]] = cells[[*IDENTITY]].to_dict("records")
        return [(row, self.current(row["address"])) for row in rows]

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

    Raises UserError if the folder is not a run, or one of an earlier version of this package.
    """
    path = Path(path)
    if not (path / "manifest.json").is_file():
        what = "does not exist" if not path.exists() else "has no manifest.json"
        raise UserError(
            f"{path} is not a run folder: it {what}. Give the folder that `smmd-bench train-eval` "
            "names when it starts, such as runs/NAME."
        )
    read_manifest(path)
    return RunFrames(path)
