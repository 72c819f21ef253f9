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
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field
from pydantic.dataclasses import dataclass

from ..errors import UserError, quoted
from ..models.settings import Settings, read_mapping, spelled
from .cell import Cell
from .experiment import Experiment, each_once
from .unread import require_read

FolderName = Annotated[str, BeforeValidator(spelled), Field(pattern=r"^[\w.-]*\w[\w.-]*$")]


@dataclass(frozen=True)
class ExperimentFile(Settings):
    """What to run, in order, in one folder: its name, or None where the experiment names it.

    `optional` holds those of the experiments that are left out where their data cannot be had.
    """

    kind: ClassVar[str] = "experiment key"

    name: FolderName | None
    experiments: Annotated[tuple[Experiment, ...], Field(min_length=1)]
    optional: tuple[Experiment, ...] = ()

    @property
    def folder_name(self) -> str:
        """The name of the run's folder."""
        return self.name or self.experiments[0].name

    def that_can_run(self) -> tuple[ExperimentFile, dict[str, str]]:
        """This file without those optional parts whose data or model is missing: task -> reason.

        Raises UserError for what is missing of the other parts, for what nothing reads, for one
        training that parts would test in two ways, or if nothing is left.
        """
        kept, reasons = [], {}
        for experiment in self.experiments:
            try:
                for cell in experiment.cells:
                    _ = cell.parts  # from the digests of data and model
                kept.append(experiment)
            except UserError as error:
                if experiment not in self.optional:
                    raise
                reasons[", ".join(experiment.tasks)] = str(error)
        if not kept:
            raise UserError(next(iter(reasons.values())))
        if not reasons:  # what is left out might read what no other part does
            require_read(kept)
        plan = dataclasses.replace(self, experiments=tuple(kept))
        seen: dict[str, Cell] = {}
        for cell in (cell for cell in plan.cells if cell.trial is None):
            if seen.setdefault(cell.address, cell) is not cell:
                raise UserError(
                    f"{cell.label} is asked for twice, with another test, engine or setting of the "
                    "files that are kept: run the parts in folders of their own, and report them "
                    "together."
                )
        return plan, reasons

    @property
    def cells(self) -> list[Cell]:
        """The cells of all parts, each once; the untuned base follows no recipe."""
        found = each_once(cell for part in self.experiments for cell in part.cells)
        bases: dict[tuple[str, str], Cell] = {}
        first = [cell if not cell.is_base else bases.setdefault((cell.model, cell.task), cell)
                 for cell in found]  # fmt: skip
        pairs = zip(found, first, strict=True)
        return [cell for cell, other in pairs if cell is other or cell.parts != other.parts]


def experiment_file(text: str | bytes, origin: str) -> ExperimentFile:
    """Read a file with or without parts; `origin` names it in errors.

    Raises UserError for broken YAML, an unknown key, a missing one or a bad value.
    """
    content = read_mapping(text, origin)
    name, parts = content.pop("name", None), content.pop("parts", None)
    if parts is None:
        values = {"name": name, "experiments": (Experiment.read(content, origin),)}
        return ExperimentFile.read(values, origin)
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        raise UserError(f"parts in {origin} must be a list of experiments, each a mapping.")
    if name is None:
        raise UserError(f"{origin} has parts and no name: give the run's folder one, with 'name'.")
    optional = [part.pop("optional", False) for part in parts]
    found = [
        Experiment.read({**content, **part}, f"{origin}, part {number}")
        for number, part in enumerate(parts, start=1)
    ]
    if wrong := [value for value in optional if not isinstance(value, bool)]:
        raise UserError(f"optional in {origin} must be true or false, not {quoted(wrong[0])}.")
    may_miss = tuple(part for part, value in zip(found, optional, strict=True) if value)
    values = {"name": name, "experiments": tuple(found), "optional": may_miss}
    return ExperimentFile.read(values, origin)
