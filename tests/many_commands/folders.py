"""Folders that many commands work on, and what a fresh folder says instead."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from smmd_bench.decoding import stage
from smmd_bench.experiment.cell import Cell
from smmd_bench.experiment.experiment import Experiment
from smmd_bench.experiment.file import ExperimentFile
from smmd_bench.models import recipe, tokenizers
from smmd_bench.plugin_system import registry
from smmd_bench.plugin_system.tuned_label import is_tuned, untuned_label
from smmd_bench.publishing import write_reports as publishing
from smmd_bench.results.frames import RunFrames, read_run
from smmd_bench.results.summary import what_the_cells_say
from smmd_bench.run.comparison import write_comparisons
from smmd_bench.run.pipeline import run_file
from smmd_bench.run.run_directory import Outcome
from smmd_bench.scoring import statistics
from smmd_bench.storage.current import CurrentCell
from smmd_bench.storage.files import read_json, write_json

from .report_files import report_files

PLUGINS = Path(__file__).parent / "plugins"
EDITED = {"toy_task.py": "SHIFT = 0", "mine.py": "STRENGTH = 0", "everything.py": "NUMBER = 0"}
"""What an edit of each plugin changes."""
REPORTS = ("everything", "task_table")
SMALL = {"epochs": 2, "validation_examples": 9, "train_examples": 2, "dtype": "float32"}
VERSIONS = ("training", "engine", "statistics")


class Killed(BaseException):
    """What a kill is in these tests: nothing catches it."""


@dataclasses.dataclass(frozen=True)
class World:
    """What is true outside of any folder: the plugins' sources and the software's versions."""

    edits: tuple[tuple[str, int], ...] = tuple((name, 0) for name in EDITED)
    versions: tuple[tuple[str, int], ...] = tuple((name, 1) for name in VERSIONS)

    def edited(self, plugin: str, number: int) -> World:
        """With another source of a plugin."""
        return dataclasses.replace(self, edits=tuple({**dict(self.edits), plugin: number}.items()))

    def upgraded(self, what: str, number: int) -> World:
        """With another version of a part of the software."""
        versions = {**dict(self.versions), what: number}
        return dataclasses.replace(self, versions=tuple(versions.items()))


@dataclasses.dataclass(frozen=True)
class Spec:
    """A cell as it was asked for last, and the world that it was asked for in."""

    loss: str
    seed: int
    engine: str
    settings: tuple[tuple[str, Any], ...]
    world: World
    tune: tuple[str, ...] = ()
    decoders: tuple[str, ...] = ("greedy",)

    @property
    def identity(self) -> tuple[str, int]:
        """What it shares with the cells whose place it takes."""
        return self.loss, self.seed

    def alone(self) -> tuple[Experiment, list[Cell]]:
        """An experiment with this cell, and its cells: this one, after the trials that it has."""
        loss = "ce" if self.loss == "base" else untuned_label(self.loss)
        tuned = dataclasses.replace(self, tune=self.tune if is_tuned(self.loss) else ())
        experiment = experiment_of([loss], self.loss == "base", tuned, [self.seed])
        (cell,) = [c for c in experiment.cells if c.loss == self.loss and c.trial is None]
        return experiment, [*cell.trials, cell]


class Workshop:
    """The plugins in a folder of their own, where they are edited; the versions of the software."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.world, self.patch = folder, World(), pytest.MonkeyPatch()
        folder.mkdir(parents=True)
        plugins = {group: dict(found) for group, found in registry._from_files.items()}
        self.patch.setattr(registry, "_from_files", plugins)
        self.patch.setattr(registry, "_files", [*registry._files])
        for name in (*EDITED, "edge.py"):
            shutil.copy(PLUGINS / name, folder / name)
            registry.load_plugin_file(folder / name)
        self.patch.setattr(publishing, "names", lambda _: [*REPORTS])  # figures take seconds
        load_tokenizer = cache(tokenizers.load_tokenizer)
        for module in (stage, tokenizers):
            self.patch.setattr(module, "load_tokenizer", load_tokenizer)
        self.patch.setattr(os, "fsync", lambda _: None)
        self.enter(self.world)

    @property
    def edge(self) -> ModuleType:
        """The module of the stubs."""
        return sys.modules[type(registry.load_engine("stub")).__module__]

    def enter(self, world: World) -> None:
        """Make the world true."""
        for name, number in world.edits:
            if dict(self.world.edits)[name] != number:
                self.write(name, number)
        versions = dict(world.versions)
        for module in (sys.modules["smmd_bench.experiment.cell"], recipe):
            self.patch.setattr(module, "TRAINING_VERSION", versions["training"])
        self.edge.VERSION = versions["engine"]
        registry.engine_identity.cache_clear()
        self.patch.setattr(statistics, "VERSION", versions["statistics"])
        self.world = world

    def write(self, name: str, number: int, comment: str = "") -> None:
        """Edit a plugin, or only a comment of it, and load it again."""
        text = (PLUGINS / name).read_text()
        old = EDITED[name]
        file = self.folder / name
        file.write_text(f"{comment}\n{text.replace(old, old.replace('0', str(number)))}")
        registry._files.remove(file.resolve())
        registry.load_plugin_file(file)

    def close(self) -> None:
        """Make all as it was before."""
        self.patch.undo()
        for loader in (registry.load_task, registry.load_loss, registry.load_engine):
            loader.cache_clear()
        registry.engine_identity.cache_clear()


def experiment_of(
    losses: Sequence[str], base: bool, spec: Spec, seeds: Sequence[int]
) -> Experiment:
    """What a command asks for."""
    return Experiment(
        tasks=("toy",), losses=tuple(losses), seeds=tuple(seeds), engine=spec.engine, base=base,
        recipe={**SMALL, **dict(spec.settings)}, tune=spec.tune, decoders=spec.decoders,
    )  # fmt: skip


def run(experiment: Experiment, folder: Path) -> Outcome:
    """`train-eval --extend`, without its reports."""
    plan = ExperimentFile(None, (experiment,))
    silent = contextlib.nullcontext(lambda *_: None)
    return run_file(plan, folder, lambda: silent, executor="inprocess", extend=True)


class Fresh:
    """Folders in which nothing but the current cells was ever made, and their reports."""

    def __init__(self, workshop: Workshop, folder: Path) -> None:
        self.workshop, self.folder = workshop, folder
        self.known: dict[str, dict[str, bytes]] = {}

    def reports(
        self, held: Sequence[Spec], rounding: dict[tuple[str, int], int], like: RunFrames
    ) -> dict[str, bytes]:
        """The files of the reports, where the cells that `like` has not finished are as there."""
        world = self.workshop.world
        state = _states(like)
        shown = held, sorted(rounding.items()), sorted(state.items()), world.edits[-1]
        key = repr((like.path.name, *shown))  # the page names its folder
        if key not in self.known:
            folder = self.folder / hashlib.sha256(key.encode()).hexdigest()[:12] / like.path.name
            self._make(folder, held, rounding)
            self.workshop.enter(world)
            _unfinish(folder, state, like)
            self.known[key] = report_files(folder)
            shutil.rmtree(folder.parent)
        return self.known[key]

    def _make(
        self, folder: Path, held: Sequence[Spec], rounding: dict[tuple[str, int], int]
    ) -> None:
        machine = self.workshop.edge.machine
        usual = machine["rounding"]
        addresses: dict[tuple[str, int], str] = {}
        for spec in held:
            self.workshop.enter(spec.world)
            _, cells = spec.alone()
            for count, cell in enumerate(cells, start=1):  # each trial on the machine that it had
                here = cell.addresses["train"], 0
                machine["rounding"] = rounding.get(spec.identity, 0)
                if cell.trial is not None:
                    machine["rounding"] = rounding[here]
                only, _ = spec.alone()
                only.__dict__["cells"] = cells[:count]  # where cached_property looks
                run(only, folder)
            addresses[spec.identity] = cells[-1].addresses["train"]
        machine["rounding"] = usual
        reorder(folder, list(addresses.values()))


def reorder(folder: Path, addresses: Sequence[str]) -> None:
    """Give a manifest its cells in this order."""
    manifest = read_json(folder / "manifest.json") or {}
    cells = [read_json(folder / "cells" / a / "cell.json") or {} for a in addresses]
    write_json(folder / "manifest.json", {**manifest, **what_the_cells_say(cells)})


def _states(run: RunFrames) -> dict[str, tuple[Any, ...]]:
    """What a run has of each cell, and of each trial that is no cell itself."""
    cells = {str(a): run.current(str(a)) for a in run.cells["address"]}
    trials = {trial.folder.name: trial for cell in cells.values() for trial in cell.trials}
    return {name: _state(cell) for name, cell in {**trials, **cells}.items()}


def _state(cell: CurrentCell) -> tuple[Any, ...]:
    done, chosen = cell.metrics is not None, cell.selection is not None
    trained, logged = cell.receipt is not None, cell.has("train_log")
    failed, choice = bool(cell.failure), cell.choice is not None
    return done, done or chosen, done or trained, done or logged, failed, choice


def _unfinish(folder: Path, state: dict[str, tuple[Any, ...]], like: RunFrames) -> None:
    """Take from a finished folder what another one has not made of its cells."""
    names = (
        "metrics.json", "selection.json", "train.json", "train_log.parquet", "FAILED.json",
        "choice.json",
    )  # fmt: skip
    for address, present in state.items():
        for name, there in zip(names, present, strict=True):
            if not there:
                (folder / "cells" / address / name).unlink(missing_ok=True)
        if not present[0]:
            for name in ("comparison.json", "noise.json", "scores.parquet"):
                (folder / "cells" / address / name).unlink(missing_ok=True)
    write_comparisons(read_run(folder))


@contextlib.contextmanager
def killed_at(count: int) -> Iterator[None]:
    """Raise Killed in place of the renaming, replacement or removal with this number."""
    left = iter(range(count))

    def counted(change: Any) -> Any:
        def call(path: Any, *args: Any, **more: Any) -> None:
            if Path(path).exists() and next(left, None) is None:
                raise Killed
            change(path, *args, **more)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for module, name in ((os, "rename"), (os, "replace"), (shutil, "rmtree")):
            patch.setattr(module, name, counted(getattr(module, name)))
        yield
