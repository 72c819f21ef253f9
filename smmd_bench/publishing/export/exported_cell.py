"""One measured cell with all that the formats say of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...contracts import Task
from ...errors import UserError
from ...plugin_system.registry import load_task
from ...results.cell_files import completions_with_scores
from ...results.frames import RunFrames
from ...storage.addresses import file_word
from ...storage.cell import BASE, StoredCell
from .measured_metric import MeasuredMetric, measured_metrics

if TYPE_CHECKING:
    import pandas as pd

    from ...contracts import DataSource


@dataclass(frozen=True)
class ExportedCell:
    """A cell that has results. `row`: its row of `run.cells`; `name`: that of its folder."""

    run: RunFrames
    row: Mapping[str, Any]
    name: str

    @property
    def now(self) -> StoredCell:
        """The files of the cell, as far as they are current."""
        return self.run.current(str(self.row["address"]))

    @cached_property
    def task(self) -> Task:
        """The task that was tested."""
        return load_task(str(self.row["task"]))

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The completions, in the order of the split, with their scores."""
        table = completions_with_scores(self.now.folder)
        if table is None:
            raise UserError(
                f"{self.now.folder} has no completions: the command that made the run makes them."
            )
        frame: pd.DataFrame = table.to_pandas()
        return frame

    @cached_property
    def metrics(self) -> list[MeasuredMetric]:
        """The metrics that have a value, the one that selects checkpoints first."""
        return measured_metrics(self.task, self.now.metrics or {}, self.frame)

    @property
    def is_trained(self) -> bool:
        """Whether it has, or had, weights of its own."""
        return self.row["loss"] != BASE and not isinstance(self.row["trained_on"], str)

    @property
    def has_adapter(self) -> bool:
        """Whether training left an adapter, which needs its base."""
        return (self.now.receipt or {}).get("kind") == "lora"

    @property
    def hub_base(self) -> tuple[str, str] | None:
        """Repository and commit of the untrained model; None: it is not one of the hub."""
        known = (self.run.manifest.get("models") or {}).get(str(self.row["model"])) or {}
        return (str(known["hub"]), str(known["commit"])) if "hub" in known else None

    @property
    def base_name(self) -> str:
        """The untrained model for people: never a path of this machine."""
        hub = self.hub_base
        return hub[0] if hub else str(self.row["model_label"]).rstrip("/").rpartition("/")[2]

    @property
    def dataset(self) -> DataSource | None:
        """The one data set of the hub that the test is of; None: there is none, or several."""
        sources = tuple(getattr(self.task, "sources", ()))
        return sources[0] if len(sources) == 1 else None

    @property
    def generation(self) -> dict[str, Any]:
        """How the completions were decoded, as the manifest says."""
        return dict((self.run.manifest.get("generation") or {}).get(str(self.row["task"])) or {})

    @property
    def engine(self) -> dict[str, Any]:
        """Name and library version of what decoded."""
        engines = self.generation.get("engine") or {}
        return dict(engines.get(str(self.row["model"])) or {})

    @property
    def versions(self) -> dict[str, str]:
        """Of the libraries that the run was made with, by name."""
        return dict(self.run.manifest.get("versions") or {})

    @property
    def params(self) -> int:
        """How many weights the model has; 0 where that is not known."""
        known = self.row["params"]
        return int(known) if isinstance(known, int) else 0

    @property
    def created(self) -> datetime:
        """When the run was made."""
        return datetime.fromisoformat(str(self.run.manifest["created"]))

    @property
    def title(self) -> str:
        """Model, task, loss and seed, for people."""
        row = self.row
        what = f"{self.base_name} {row['task']} {row['loss']}"
        return what if row["loss"] == BASE else f"{what} seed {row['seed']}"


def exported_cells(run: RunFrames, cells: pd.DataFrame) -> list[ExportedCell]:
    """Those of these cells of a run that have results, each with a folder name of its own."""
    done = cells[cells["status"] == "done"]
    found = [ExportedCell(run, row, "") for row in done.to_dict("records")]  # type: ignore[arg-type]
    names = [_name(cell, "task_name") for cell in found]
    if len({*names}) < len(names):
        names = [_name(cell, "task") for cell in found]
    if len({*names}) < len(names):
        pairs = zip(names, found, strict=True)
        names = [f"{name}-{cell.row['address'][:6]}" for name, cell in pairs]
    return [ExportedCell(run, c.row, name) for c, name in zip(found, names, strict=True)]


def _name(cell: ExportedCell, task: str) -> str:
    model = cell.hub_base[0] if cell.hub_base else str(cell.row["model_label"])
    words = (model.rpartition("/")[2], cell.row[task], cell.row["loss"], f"seed{cell.row['seed']}")
    parts = [file_word(str(word)).strip(".") for word in words]
    return "-".join("-".join(filter(None, part.split("-"))) for part in parts)
