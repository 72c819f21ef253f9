"""Reading a run folder into pandas, lazily: `read_run(path).metrics` and its siblings.

The large files (completions, scores, probes, training logs) can be read by column and by cell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UserError
from ..scoring.measure import COMPARISON
from ..storage.cell import CellFile, CellRecord, StoredCell, stored_cell
from ..storage.files import read_manifest
from .baselines import Compared, all_compared
from .pairing import KEY, order_losses
from .summary import (
    CELL_COLUMNS,
    IDENTITY,
    TUNING_COLUMNS,
    add_settings,
    cell_row,
    columns_of,
    concatenate,
    sort_cells,
    summarise_cells,
    tuning_rows,
)

if TYPE_CHECKING:
    import pandas as pd

_BOUNDS = ("value", "low", "high")
_DIFFERENCE = ("difference", "low", "high", "n", "b", "c", "p")


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
        """What `manifest.json` and its cells say: models, data, generation, plugins."""
        content = read_manifest(self.path)
        return {**summarise_cells(content.get("cells") or ()), **content}

    @cached_property
    def cells(self) -> pd.DataFrame:
        """One row a cell: what it is, and its status: "done", "failed", "skipped" or "pending".

        A failed cell has its `stage` and `error`, a skipped one (its loss cannot apply) the reason
        as `error`. `params` is a nullable integer, `recipe` a dictionary, `trained_on` the task of
        a test of transfer, `sizes` the numbers of examples that are there, by split. Then comes a
        column for each parameter that a loss names and each setting in which recipes differ.
        """
        import pandas as pd

        rows = []
        for address, content in self.described.items():
            rows.append(cell_row(content, self.current(address)))
        rows = sort_cells(rows, self.manifest)

        # Columns that may be all missing get their type here: pandas would guess float.
        frame = pd.DataFrame(rows, columns=list(CELL_COLUMNS))
        frame = frame.astype({"seed": "int64", "params": "Int64"})
        frame = frame.astype(dict.fromkeys(("stage", "error", "trained_on"), "str"))
        # The rows are sorted, so that a name first appears at its place, or as near as its first
        # model and task allow.
        for column in KEY:
            order = [*frame[column].unique()]
            frame[column] = pd.Categorical(frame[column], order)
        # The losses of completions made elsewhere are labels without parameters.
        if "predictions" in self.manifest:
            return frame
        return add_settings(frame)

    def current(self, address: str) -> StoredCell:
        """The folders of a cell."""
        return self._current[address]

    @cached_property
    def described(self) -> dict[str, CellRecord]:
        """What the manifest says of each row of the tables, by address, in no order."""
        return {str(cell["address"]): cell for cell in self.manifest.get("cells") or ()}

    @property
    def rows(self) -> list[CellRecord]:
        """The same without the addresses."""
        return [*self.described.values()]

    @cached_property
    def metrics(self) -> pd.DataFrame:
        """One row a cell and metric: value, the bounds of its 95 % interval, and n."""
        rows = []
        for identity, cell in self._pair_with_files(self._select_measured()):
            for metric, values in (cell.metrics or {})["metrics"].items():
                rows.append({**identity, "metric": metric, **values})
        return self._make_frame(rows, ("metric", *_BOUNDS, "n"), _BOUNDS)

    @property
    def comparisons(self) -> pd.DataFrame:
        """One row a compared cell and metric: the difference to the cell `against`.

        `b`, `c` and `p` are those of McNemar's exact test where the metric is a share of the
        examples; of another metric p is by the bootstrap.
        """
        return self._select_compared("comparison")

    @property
    def noise(self) -> pd.DataFrame:
        """The same of cross-entropy against cross-entropy of another seed, in disjoint pairs."""
        return self._select_compared("noise")

    @cached_property
    def paired(self) -> pd.DataFrame:
        """The rows of both, with their `kind`, "comparison" or "noise", and `jackknife`, lists of
        the pseudo-values by which `smmd_bench.scoring.crossed` pools seeds."""
        rows = [*self._read_compared("comparison"), *self._read_compared("noise")]
        pair = ("against", "against_loss", "metric")
        columns = (*pair, *_DIFFERENCE, "jackknife", "kind")
        # n counts examples, and is never missing.
        floats = [name for name in _DIFFERENCE if name != "n"]
        return self._make_frame(rows, columns, floats)

    def _read_compared(self, kind: str) -> Iterator[dict[str, Any]]:
        """Read the rows of `paired` of one kind, from what `compare/` holds of each pair."""
        baselines = {}
        for pair in self.compared:
            if pair.kind == kind:
                baselines[pair.mine["address"]] = pair.other

        for identity, cell in self._pair_with_files(self._select_measured()):
            other = baselines.get(identity["address"])
            if other is None:
                continue
            # A pair that is not compared yet, or by an older statistic, has no row.
            content = cell.comparison(self.current(other["address"]), COMPARISON)
            if content is None:
                continue
            for metric, values in content["metrics"].items():
                yield {
                    **identity,
                    "against": other["address"],
                    "against_loss": other["loss"],
                    "metric": metric,
                    **values,
                    "kind": kind,
                }

    @cached_property
    def verdict(self) -> pd.DataFrame:
        """One row a model, task, loss and metric: the difference to cross-entropy over the seeds,
        and what it says of the loss; see `smmd_bench.results.verdict`."""
        from .verdict import verdict_frame

        return verdict_frame(self)

    @cached_property
    def selection(self) -> pd.DataFrame:
        """One row a cell and epoch: the validation metrics, and whether it was `selected`.

        `selection_metric` names the metric that chose.
        """
        rows = []
        for identity, cell in self._pair_with_files(self.cells):
            selection = cell.selection
            if selection is None:
                continue
            for epoch in selection["epochs"]:
                rows.append(
                    {
                        **identity,
                        "selection_metric": selection["metric"],
                        **epoch,
                        "selected": epoch["epoch"] == selection["best_epoch"],
                    }
                )

        # The other names are those of the metrics, which each task has of its own.
        columns = ["selection_metric", "epoch", "n", "selected"]
        names = dict.fromkeys(chain(*rows))
        metrics = [name for name in names if name not in (*IDENTITY, *columns)]
        return self._make_frame(rows, (*columns, *metrics), metrics)

    @cached_property
    def tuning(self) -> pd.DataFrame:
        """One row a tuned cell and configuration: see `tuning_rows` of `summary`."""
        rows = []
        for identity, cell in self._pair_with_files(self.cells):
            content = self.described[identity["address"]]
            rows += [{**identity, **row} for row in tuning_rows(content, cell)]
        frame = self._make_frame(rows, TUNING_COLUMNS, _BOUNDS)
        return frame.astype({"epoch": "Int64", "n": "Int64", "chosen": "bool"})

    @cached_property
    def regression(self) -> pd.DataFrame:
        """What `smmd-bench regress` found, in the columns of `smmd_bench.results.regression`."""
        from .regression import regression_frame

        return regression_frame(self)

    @cached_property
    def completions(self) -> pd.DataFrame:
        """Every completion of every measured cell, with its scores, which have the same rows."""
        cells = self.having("scores")
        tables = []
        for address in cells["address"]:
            cell = self.current(address)
            table = columns_of(cell, "completions")
            scores = columns_of(cell, "scores")
            # Both have the columns that tell an example.
            for name in scores.column_names:
                if name not in table.column_names:
                    table = table.append_column(name, scores[name])
            tables.append(table)
        return concatenate(cells, tables)

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
        """Read the rows of one kind of Parquet file, over all cells that have it.

        `columns` (missing values where a file lacks one) and `addresses` restrict what is read.
        """
        cells = self.having(file, addresses)
        tables = []
        for address in cells["address"]:
            tables.append(columns_of(self.current(address), file, columns))
        return concatenate(cells, tables)

    def having(
        self, file: CellFile, addresses: Iterable[str] | None = None
    ) -> pd.DataFrame:
        """Select the rows of `cells`, or of these of them, that have this kind of file."""
        # A cell has a training log before it is measured; its other files count once it is whole.
        cells = self.cells if file == "train_log" else self._select_measured()
        if addresses is not None:
            cells = cells[cells["address"].isin(list(addresses))]
        has_file = [self.current(address).has(file) for address in cells["address"]]
        return cells.loc[has_file]

    def only(self, cells: pd.DataFrame) -> RunFrames:
        """Restrict the run to these of its cells; categories that none of them has are dropped."""
        cells = cells.copy()
        # Tables and figures read the losses of a run off its categories.
        for column in KEY:
            cells[column] = cells[column].cat.remove_unused_categories()

        # What is of the whole run is not read again: `__dict__` is where cached_property looks.
        restricted = RunFrames(self.path)
        for name in ("manifest", "_current", "compared"):
            restricted.__dict__[name] = getattr(self, name)
        restricted.__dict__["cells"] = cells
        return restricted

    def _select_measured(self) -> pd.DataFrame:
        return self.cells[self.cells["status"] == "done"]

    @cached_property
    def _current(self) -> dict[str, StoredCell]:
        # Each remembers what it has read, so that a cell's files are opened once for all frames.
        cells = {}
        for address, content in self.described.items():
            cells[address] = stored_cell(self.path, content)
        return cells

    @cached_property
    def compared(self) -> list[Compared]:
        """The pairs of measured cells that are compared."""
        return all_compared(self.measured)

    @property
    def measured(self) -> list[CellRecord]:
        """What the manifest says of each measured cell."""
        # Not by `cells`, which `only` restricts: a cell is compared with any of the run.
        measured = []
        for address, content in self.described.items():
            if self.current(address).metrics:
                measured.append(content)
        return measured

    def _select_compared(self, kind: str) -> pd.DataFrame:
        # Pseudo-values, one an example, are for tests and would swell a table.
        rows = self.paired[self.paired["kind"] == kind]
        return rows.drop(columns=["jackknife", "kind"]).reset_index(drop=True)

    def _pair_with_files(
        self, cells: pd.DataFrame
    ) -> list[tuple[dict[str, Any], StoredCell]]:
        rows: list[dict[Any, Any]] = cells[[*IDENTITY]].to_dict("records")
        return [(row, self.current(row["address"])) for row in rows]

    def _make_frame(
        self, rows: list[dict[str, Any]], columns: Sequence[str], floats: Sequence[str]
    ) -> pd.DataFrame:
        import pandas as pd

        # Columns without a single number, and frames without a row, are of floats all the same.
        frame = pd.DataFrame(rows, columns=[*IDENTITY, *columns])
        frame = frame.astype(dict.fromkeys(floats, "float64"))
        return order_losses(frame, self.cells)


def read_run(path: str | Path) -> RunFrames:
    """The frames of a run folder.

    Raises UserError if the folder is not a run, or one of an earlier version of this package.
    """
    path = Path(path)
    if not (path / "manifest.json").is_file():
        raise UserError(
            f"{path} is not a run folder: it has no manifest.json. Give the folder that "
            "`smmd-bench train-eval` names when it starts, such as runs/NAME."
        )
    # For its error: a run of an earlier version is refused here, and not in the middle of a report.
    read_manifest(path)
    return RunFrames(path)
