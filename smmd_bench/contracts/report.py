"""Reports, what they read and what they make."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from ..storage.cell import CellFile, StoredCell


class Run(Protocol):
    """A run as frames: what `smmd_bench.read_run` returns, and reports read.

    Every frame has the columns address, model, task, loss and seed, in the order of the experiment,
    and shows only what is current; see `smmd_bench.results.frames`.
    """

    @property
    def path(self) -> Path:
        """The folder."""

    @property
    def manifest(self) -> Mapping[str, Any]:
        """What `manifest.json` says: name, experiment, versions, created, command."""

    @property
    def cells(self) -> pd.DataFrame:
        """One row a cell: what it is, and its status: done, failed, skipped or pending."""

    @property
    def metrics(self) -> pd.DataFrame:
        """One row a cell and metric: value, the bounds of its 95 % interval, and n."""

    @property
    def comparisons(self) -> pd.DataFrame:
        """One row a compared cell and metric: the difference, its bounds, and McNemar's b, c, p."""

    @property
    def noise(self) -> pd.DataFrame:
        """The same of cross-entropy against cross-entropy of another seed."""

    @property
    def paired(self) -> pd.DataFrame:
        """The rows of both with their `kind` and the pseudo-values by which seeds are pooled."""

    @property
    def verdict(self) -> pd.DataFrame:
        """One row a model, task, loss and metric: the difference over the seeds, and a word."""

    @property
    def selection(self) -> pd.DataFrame:
        """One row a cell and epoch: the validation metrics, and whether it was `selected`."""

    @property
    def tuning(self) -> pd.DataFrame:
        """One row a tuned cell and configuration: how it validated, and whether it was `chosen`."""

    @property
    def regression(self) -> pd.DataFrame:
        """One row a checkpoint, suite, task or group, and metric of `smmd-bench regress`."""

    @property
    def completions(self) -> pd.DataFrame:
        """One row a completion, with its scores."""

    @property
    def probes(self) -> pd.DataFrame:
        """One row a digit probe, without the full vectors."""

    @property
    def train_log(self) -> pd.DataFrame:
        """One row an optimiser step; `loss_value` is the total."""

    def read(
        self,
        file: CellFile,
        columns: Sequence[str] | None = None,
        addresses: Iterable[str] | None = None,
    ) -> pd.DataFrame:
        """Some columns of one kind of Parquet file, of some cells (None: all)."""

    def having(self, file: CellFile) -> pd.DataFrame:
        """The rows of `cells` of which `read` has this kind of file."""

    def current(self, address: str) -> StoredCell:
        """The files of a cell, as far as they are current."""

    def only(self, cells: pd.DataFrame) -> Run:
        """The run as if it had these of its cells alone."""


@runtime_checkable
class Report(Protocol):
    """One table or figure of the paper, made from the frames of a run.

    A class may have `order`, an int: where its report stands on the page, and which one is printed
    when a command ends, that with the least (default: 100).
    """

    name: ClassVar[str]
    title: ClassVar[str]
    paper: ClassVar[str]

    def build(self, run: Run) -> Artefact:
        """The table or figure. Raises ReportSkippedError where there is nothing to show."""


@dataclass(frozen=True)
class Artefact:
    """What a report makes: a table, a figure, or both, with the sentence that goes under it.

    `caption` says n, seeds, intervals and what is published; `data` is the tidy frame behind a
    figure, written beside it as CSV. `notes` are sentences that other reports have, too, such as
    how an interval is made: they stand once a page.
    """

    caption: str
    table: pd.DataFrame | None = None
    figure: Figure | None = None
    data: pd.DataFrame | None = None
    notes: Sequence[str] = ()
