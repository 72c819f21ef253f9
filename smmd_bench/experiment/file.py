"""The YAML file of `smmd-bench run`: one experiment, or several parts of one run.

name: miniature              # the run's folder, runs/miniature
seeds: [0, 1, 2]             # what stands here holds in every part that does not say otherwise
parts:
  - {tasks: [arithmetic], losses: [ce, smmd]}
  - {tasks: [clock_time], losses: [ce, gce, smmd]}
  - {tasks: [gsm8k], losses: [ce, smmd], optional: true}

An optional part is left out, and named, where its data or model cannot be had.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field
from pydantic.dataclasses import dataclass

from ..errors import UserError
from ..models.settings import Settings, read_mapping
from ..plugin_system.checked_task import require_seed
from .cell import Cell
from .experiment import Experiment, each_once
from .tuning import read_axes


def _as_text(value: Any) -> Any:
    """A whole number, such as a year, as text; `1.10` would lose its zero."""
    return str(value) if type(value) is int else value


FolderName = Annotated[str, BeforeValidator(_as_text), Field(pattern=r"^[\w.-]*\w[\w.-]*$")]


@dataclass(frozen=True)
class ExperimentFile(Settings):
    """What to run, in order, in one folder: its name, or None where the experiment names it."""

    kind: ClassVar[str] = "experiment key"

    name: FolderName | None
    experiments: Annotated[tuple[Experiment, ...], Field(min_length=1)]

    @property
    def folder_name(self) -> str:
        """The name of the run's folder."""
        return self.name or self.experiments[0].name

    def drop_missing(self) -> tuple[ExperimentFile, dict[str, str]]:
        """This file without those optional parts whose data or model is missing: task -> reason.
        Raises UserError for what is missing otherwise, for what nothing reads, and for one training
        that parts would test in two ways."""
        kept, reasons = [], {}
        for experiment in self.experiments:
            try:
                for cell in experiment.cells:
                    _ = cell.parts  # from the digests of data and model
                kept.append(experiment)
            except UserError as error:
                if not experiment.optional:
                    raise
                reasons[", ".join(experiment.tasks)] = str(error)
        if not kept:
            raise UserError(next(iter(reasons.values())))
        if not reasons:  # what is left out might read what no other part does
            _require_read(kept)
        plan = dataclasses.replace(self, experiments=tuple(kept))
        cells = plan.cells
        tasks = {cell.task: cell for cell in cells}
        if len({cell.task_label for cell in tasks.values()}) < len(tasks):
            raise UserError("Two table tasks have one name: give one a title=, or rename its file.")
        seen: dict[str, Cell] = {}
        for cell in (cell for cell in cells if cell.trial is None):
            if seen.setdefault(cell.address, cell) is not cell:
                raise UserError(
                    f"{cell.label} is asked for twice, with another test, engine or setting of the "
                    "files that are kept: run the parts in folders of their own."
                )
        return plan, reasons

    @property
    def cells(self) -> list[Cell]:
        """The cells of all parts, each once; the untuned base follows no recipe."""
        found: list[Cell] = []
        bases: dict[tuple[str, str], Cell] = {}
        for cell in each_once(cell for part in self.experiments for cell in part.cells):
            first = bases.setdefault((cell.model, cell.task), cell) if cell.is_base else cell
            if cell is first or cell.parts != first.parts:
                found.append(cell)
        return found


def experiment_file(text: str | bytes, origin: str) -> ExperimentFile:
    """Read a file with or without parts; `origin` names it in errors."""
    content = read_mapping(text, origin)
    name, parts = content.pop("name", None), content.pop("parts", [{}])
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        raise UserError(f"parts in {origin} must be a list of experiments, each a mapping.")
    if name is None and len(parts) != 1:
        raise UserError(f"{origin} has parts and no name: give the run's folder one, with 'name'.")
    places = [f"{origin}, part {at}" for at in range(1, len(parts) + 1)]
    experiments = tuple(
        Experiment.read({**content, **part}, place if part else origin)
        for part, place in zip(parts, places, strict=True)
    )
    return ExperimentFile.read({"name": name, "experiments": experiments}, origin)


def _require_read(experiments: Sequence[Experiment]) -> None:
    """Raise UserError for settings of LoRA that no training reads, and for a data seed from which
    none of the examples follow: the user would believe that they changed something."""
    tuned = {key for part in experiments for _, key in read_axes(part.tune)}
    given = sorted({key for part in experiments for key in part.recipe} | tuned)
    cells = [cell for part in experiments for cell in part.cells]
    unread = [key for key in given if key.startswith("lora_")]
    if unread and all(cell.recipe.method == "full" for cell in cells):
        raise UserError(
            f"{unread[0]} changes nothing with full fine-tuning: leave it out, or add --set "
            "method=lora."
        )
    for seed in dict.fromkeys(part.data_seed for part in experiments if part.tune_trials is None):
        require_seed(((c.task_plugin, c.splits) for c in cells if c.data_seed == seed), seed)
