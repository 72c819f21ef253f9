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
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from ..errors import UserError, did_you_mean
from .cell import Cell
from .experiment import LISTS, Experiment

PARTS, NAME, OPTIONAL = "parts", "name", "optional"


@dataclass(frozen=True)
class ExperimentFile:
    """What to run, in order, in one folder: its name, or None where the experiment names it.

    `optional` holds those of the experiments that are left out where their data cannot be had.
    """

    name: str | None
    experiments: tuple[Experiment, ...]
    optional: tuple[Experiment, ...] = ()

    @property
    def folder_name(self) -> str:
        """The name of the run's folder."""
        return self.name or self.experiments[0].name

    def to_flags(self) -> list[str]:
        """The `smmd-bench train-eval` command lines that mean the same, in order."""
        first = [] if self.name is None else ["--out", f"runs/{self.name}"]
        return [
            shlex.join([*shlex.split(part.to_flags()), *first, *(["--extend"] if number else [])])
            for number, part in enumerate(self.experiments)
        ]

    def that_can_run(self) -> tuple[ExperimentFile, dict[str, str]]:
        """This file without those optional parts whose data or model is missing: task -> reason.

        Raises UserError for what is missing of the other parts, or if nothing is left.
        """
        kept, reasons = [], {}
        for experiment in self.experiments:
            try:
                for cell in experiment.cells:
                    _ = cell.addresses  # from the digests of data and model
                kept.append(experiment)
            except UserError as error:
                if experiment not in self.optional:
                    raise
                reasons[", ".join(experiment.tasks)] = str(error)
        if not kept:
            raise UserError(next(iter(reasons.values())))
        return dataclasses.replace(self, experiments=tuple(kept)), reasons

    @property
    def cells(self) -> list[Cell]:
        """The cells of all parts, each once."""
        return list(dict.fromkeys(cell for part in self.experiments for cell in part.cells))


def experiment_file(text: str, origin: str) -> ExperimentFile:
    """Read a file with or without parts; `origin` names it in errors.

    Raises UserError for broken YAML, an unknown key, a missing one or a bad value.
    """
    content = _mapping(text, origin)
    name = content.pop(NAME, None)
    if name is not None and not re.fullmatch(r"[\w.-]*\w[\w.-]*", str(name)):
        raise UserError(
            f"The name in {origin} must be that of a folder, of letters, digits, '.', '_' and '-', "
            f"not {name!r}."
        )
    name = None if name is None else str(name)
    if PARTS not in content:
        return ExperimentFile(name, (_experiment(content, origin),))
    parts = content.pop(PARTS)
    if (
        not isinstance(parts, list)
        or not all(isinstance(part, dict) for part in parts)
        or not parts
    ):
        raise UserError(f"parts in {origin} must be a list of experiments, each a mapping.")
    if name is None:
        raise UserError(f"{origin} has parts and no name: give the run's folder one, with 'name'.")
    experiments, optional = [], []
    for number, part in enumerate(parts, start=1):
        where = f"{origin}, part {number}"
        may_miss = part.pop(OPTIONAL, False)
        if not isinstance(may_miss, bool):
            raise UserError(f"optional in {where} must be true or false, not {may_miss!r}.")
        experiments.append(_experiment({**content, **part}, where))
        optional += [experiments[-1]] * may_miss
    return ExperimentFile(name, tuple(experiments), tuple(optional))


def experiment_from_yaml(text: str, origin: str) -> Experiment:
    """Read one experiment; `origin` names the file in errors. Raises UserError as above."""
    return _experiment(_mapping(text, origin), origin)


def _mapping(text: str, origin: str) -> dict[Any, Any]:
    try:
        content = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date that does not exist
        raise UserError(f"{origin} is not valid YAML: {' '.join(str(error).split())}.") from error
    if not isinstance(content, dict):
        raise UserError(f"{origin} must be a mapping with at least the keys tasks and losses.")
    return content


def _experiment(content: Mapping[Any, Any], origin: str) -> Experiment:
    known = {f.name: f for f in dataclasses.fields(Experiment)}
    for key in content:
        if key not in known:
            raise UserError(f"Unknown key '{key}' in {origin}: {did_you_mean(str(key), known)}")
    for key in ("tasks", "losses"):
        if not content.get(key):
            raise UserError(f"{origin} lacks the key '{key}', a list of names.")
    arguments: dict[str, Any] = {
        key: tuple(value if isinstance(value, list) else [value]) if key in LISTS else value
        for key, value in content.items()
    }
    try:
        return Experiment(**arguments)
    except UserError as error:
        raise UserError(f"{origin}: {error}") from error
