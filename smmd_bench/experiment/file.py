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
from typing import Annotated, Any, ClassVar, get_args

from pydantic import BeforeValidator, Field
from pydantic.dataclasses import dataclass

from ..contracts import Split
from ..errors import UnreachableError, UserError
from ..models.cards import model_card
from ..models.settings import Settings, read_mapping
from ..plugin_system.checked_task import require_seed, take_identity
from ..plugin_system.registry import load_task
from .cell import Cell
from .experiment import Experiment, each_once
from .tuning import read_axes


def _as_text(value: Any) -> Any:
    """A whole number, such as a year, as text; `1.10` would lose its zero."""
    return str(value) if type(value) is int else value


FolderName = Annotated[
    str, BeforeValidator(_as_text), Field(pattern=r"^[\w.-]*\w[\w.-]*$")
]


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
        kept = []
        reasons = {}
        for experiment in self.experiments:
            try:
                for cell in experiment.cells:
                    # Its digests need the data and the model.
                    _ = cell.parts
                kept.append(experiment)
            except UserError as error:
                if not experiment.optional:
                    raise
                reasons[", ".join(experiment.tasks)] = str(error)

        # Nothing is left to run, so that the first reason is an error after all.
        if not kept:
            raise UserError(next(iter(reasons.values())))
        # What is left out might read a setting that no other part does.
        if not reasons:
            _require_read(kept)
        plan = dataclasses.replace(self, experiments=tuple(kept))
        _require_distinct(plan.cells)
        return plan, reasons

    def find_unreachable(self) -> tuple[list[str], list[str]]:
        """Find the models, and the tasks whose data, are neither here nor to be fetched."""
        models: dict[str, None] = {}
        tasks: dict[str, None] = {}
        for experiment in self.experiments:
            for model in experiment.models:
                try:
                    model_card(model)
                except UnreachableError:
                    models[model] = None

            for task in map(load_task, experiment.tasks):
                try:
                    for split in get_args(Split):
                        take_identity(task, split, experiment.data_seed)
                except UnreachableError:
                    tasks[task.name] = None

        return [*models], [*tasks]

    @property
    def cells(self) -> list[Cell]:
        """The cells of all parts, each once; the untuned base follows no recipe."""
        cells: list[Cell] = []
        bases: dict[tuple[str, str], Cell] = {}
        for cell in each_once(cell for part in self.experiments for cell in part.cells):
            # Bases of two recipes are one where their results are.
            first = cell
            if cell.is_base:
                first = bases.setdefault((cell.model, cell.task), cell)
            if cell is first or cell.parts != first.parts:
                cells.append(cell)
        return cells


def experiment_file(text: str | bytes, origin: str) -> ExperimentFile:
    """Read a file with or without parts; `origin` names it in errors."""
    content = read_mapping(text, origin)
    name = content.pop("name", None)
    parts = content.pop("parts", [{}])
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        raise UserError(
            f"parts in {origin} must be a list of experiments, each a mapping."
        )
    # One experiment names its folder itself; several have no name in common.
    if name is None and len(parts) != 1:
        raise UserError(
            f"{origin} has parts and no name: give the run's folder one, with 'name'."
        )

    # What stands beside the parts holds in each that does not say otherwise.
    experiments = []
    for number, part in enumerate(parts, 1):
        place = f"{origin}, part {number}" if part else origin
        experiments.append(Experiment.read({**content, **part}, place))
    return ExperimentFile.read(
        {"name": name, "experiments": tuple(experiments)}, origin
    )


def _require_distinct(cells: Sequence[Cell]) -> None:
    """Raise UserError for two tasks of one name, and for one training with two tests."""
    by_task = {cell.task: cell for cell in cells}
    labels = {cell.task_label for cell in by_task.values()}
    if len(labels) < len(by_task):
        raise UserError(
            "Two table tasks have one name: give one a title=, or rename its file."
        )

    # Two tests of one training would take each other's place in the manifest.
    by_address: dict[str, Cell] = {}
    for cell in cells:
        if cell.trial is None and by_address.setdefault(cell.address, cell) is not cell:
            raise UserError(
                f"{cell.label} is asked for twice, with another test, engine or setting of the "
                "files that are kept: run the parts in folders of their own."
            )


def _require_read(experiments: Sequence[Experiment]) -> None:
    """Raise UserError for settings of LoRA that no training reads, and for a data seed from which
    none of the examples follow: the user would believe that they changed something."""
    settings: set[str] = set()
    cells: list[Cell] = []
    for part in experiments:
        cells += part.cells
        settings.update(part.recipe)
        settings.update(key for _, key in read_axes(part.tune))

    # `checked_settings` knows no cell: whether LoRA is used, only the plan says.
    of_lora = sorted(key for key in settings if key.startswith("lora_"))
    if of_lora and all(cell.recipe.method == "full" for cell in cells):
        raise UserError(
            f"{of_lora[0]} changes nothing with full fine-tuning: leave it out, or add --set "
            "method=lora."
        )

    # With --tune-trials the seed also draws the configurations.
    fixed = [part for part in experiments if part.tune_trials is None]
    for seed in dict.fromkeys(part.data_seed for part in fixed):
        of_seed = [cell for cell in cells if cell.data_seed == seed]
        require_seed([(cell.task_plugin, cell.splits) for cell in of_seed], seed)
