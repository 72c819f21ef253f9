"""Folders that many commands work on, and what a fresh folder says instead."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pytest

from smmd_bench.decoding import stage
from smmd_bench.experiment.cell import Cell
from smmd_bench.experiment.experiment import Experiment
from smmd_bench.experiment.file import ExperimentFile
from smmd_bench.models import recipe, tokenizers
from smmd_bench.plugin_system import registry
from smmd_bench.plugin_system.parameters import is_tuned, untuned_label
from smmd_bench.publishing import write_reports as publishing
from smmd_bench.results.frames import RunFrames, read_run
from smmd_bench.run.cell_json import describe_cells
from smmd_bench.run.comparison import write_comparisons
from smmd_bench.run.pipeline import Outcome, run_file
from smmd_bench.run.run_directory import RunDirectory, lacks_weights
from smmd_bench.scoring import statistics
from smmd_bench.storage.files import FORMAT, read_json, write_json
from tests.conftest import separate_plugins, silent

PLUGINS = Path(__file__).parent / "plugins"
EDITED = {"toy_task.py": "SHIFT = 0", "mine.py": "STRENGTH = 0"}
"""What an edit of each plugin changes."""
REPORTS = ("task_table",)
SMALL = {"epochs": 2, "validation_examples": 9, "train_examples": 2, "dtype": "float32"}
VERSIONS = ("training", "engine", "statistics")
FRAMES = (
    "metrics", "comparisons", "noise", "selection", "tuning", "completions", "probes", "train_log"
)  # fmt: skip
BROKEN, FAILS = "stub[flavour=3]", 0.3
"""An engine that decodes nothing; the learning rate with which every training fails."""


class Killed(BaseException):
    """What a kill is in these tests: nothing catches it."""


@dataclasses.dataclass(frozen=True)
class World:
    """What is true outside of any folder: the plugins' sources and the software's versions."""

    edits: tuple[tuple[str, int], ...] = tuple((name, 0) for name in EDITED)
    versions: tuple[tuple[str, int], ...] = tuple((name, 1) for name in VERSIONS)

    def edited(self, plugin: str, number: int) -> World:
        """With another source of a plugin."""
        return dataclasses.replace(
            self, edits=tuple({**dict(self.edits), plugin: number}.items())
        )

    def upgraded(self, what: str, number: int) -> World:
        """With another version of a part of the software."""
        versions = {**dict(self.versions), what: number}
        return dataclasses.replace(self, versions=tuple(versions.items()))


@dataclasses.dataclass(frozen=True)
class Asked:
    """What a command asks for."""

    losses: tuple[str, ...]
    base: bool = False
    rate: float = 0.1
    engine: str = "stub"
    size: int = 9
    keep: bool = False
    tune: tuple[str, ...] = ()
    decoders: tuple[str, ...] = ("greedy",)
    transfers: bool = False

    @property
    def experiment(self) -> Experiment:
        """The experiment, in the world as it is."""
        settings = {"learning_rate": self.rate, "test_examples": self.size}
        return Experiment(
            tasks=("toy",), losses=self.losses, engine=self.engine, base=self.base,
            recipe={**SMALL, **settings, "keep_epochs": self.keep}, tune=self.tune,
            decoders=self.decoders, transfers=self.transfers,
        )  # fmt: skip

    def alone(self, loss: str, task: str) -> list[Cell]:
        """One cell of it, after those that it needs."""
        is_base = loss == "base"
        plain = "ce" if is_base else untuned_label(loss)
        tune = self.tune if is_tuned(loss) else ()
        narrowed = dataclasses.replace(self, losses=(plain,), base=is_base, tune=tune)
        cells = narrowed.experiment.cells
        (cell,) = [
            cell
            for cell in cells
            if (cell.loss, cell.task, cell.trial) == (loss, task, None)
        ]
        sources = [cell.source] if cell.source else []
        return [*cell.owner.trials, *sources, cell]

    @property
    def fails(self) -> bool:
        """Whether any of its cells fails."""
        trials = [
            cell.recipe.learning_rate
            for cell in self.experiment.cells
            if not cell.is_base
        ]
        return self.engine == BROKEN or FAILS in trials


class Workshop:
    """The plugins in a folder of their own, where they are edited; the versions of the software."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.world = World()
        self.patch = pytest.MonkeyPatch()
        folder.mkdir(parents=True)
        self.stack = contextlib.ExitStack()
        self.stack.enter_context(separate_plugins())
        for name in (*EDITED, "edge.py"):
            shutil.copy(PLUGINS / name, folder / name)
            registry.load_plugin_file(folder / name)

        # Figures, tokenizers and a disk that is really written take seconds each.
        small = {"reports": [*REPORTS]}
        self.patch.setattr(
            publishing, "names", lambda g: small.get(g) or registry.names(g)
        )
        load_tokenizer = cache(tokenizers.load_tokenizer)
        self.patch.setattr(stage, "load_tokenizer", load_tokenizer)
        self.patch.setattr(tokenizers, "load_tokenizer", load_tokenizer)
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
        file.write_text(
            f"{comment}\n{text.replace(old, old.replace('0', str(number)))}"
        )
        registry._files.remove(file.resolve())
        registry.load_plugin_file(file)

    def close(self) -> None:
        """Make all as it was before."""
        self.patch.undo()
        self.stack.close()
        registry.engine_identity.cache_clear()


def run(asked: Asked, folder: Path, *, restore: bool = False) -> Outcome:
    """`train-eval --extend`, without its reports."""
    plan = ExperimentFile(None, (asked.experiment,))
    progress = contextlib.nullcontext(silent)
    run = RunDirectory(folder, restore)
    how = {"executor": "inprocess", "extend": True}
    return run_file(plan, run, run.missing(plan.cells), lambda: progress, **how)


def make_fresh(workshop: Workshop, folder: Path, held, rounding) -> RunFrames:
    """A folder in which only these cells were made, stage by stage, each in its own world.

    held: what asked for each cell, the world it was asked for in, its loss and task. rounding: of
    the machine that each training ran on, by its name.
    """
    edge, world, contents = workshop.edge, workshop.world, []
    rounding_here = edge.machine["rounding"]
    for asked, there, loss, task in held:
        workshop.enter(there)
        cells = asked.alone(loss, task)
        for cell in cells:
            if "train" in cell.parts and lacks_weights(cell.stored(folder)):
                edge.machine["rounding"] = rounding.get(cell.parts["train"], 0)
                edge.work("train", [cell], folder)
        if trials := [cell for cell in cells if cell.trial is not None]:
            edge.work("decode", trials, folder)
            stage.select_weights(cells[-1].owner, folder)
        edge.work("decode", cells[len(trials) :], folder)
        contents += describe_cells(cells[-1:])

    edge.machine["rounding"] = rounding_here
    workshop.enter(world)
    manifest = {
        "format": FORMAT,
        "name": "run",
        "command": "",
        "created": "2026-01-01T00:00:00",
    }
    write_json(folder / "manifest.json", {**manifest, "cells": contents})
    write_comparisons(read_run(folder))
    return read_run(folder)


def require_equal(run: RunFrames, fresh: RunFrames) -> None:
    """What a folder says of its finished cells is what the fresh one says of them; where all are
    finished, the reports are the same, too."""
    write_comparisons(run)
    run = read_run(run.path)
    is_done = run.cells["status"] == "done"
    addresses = run.cells.loc[is_done, "address"]

    for name in FRAMES:
        frame = getattr(run, name)
        expected = getattr(fresh, name)
        frame = frame[frame["address"].isin(addresses)]
        expected = expected[expected["address"].isin(addresses)]
        if "against" in expected:
            expected = expected[expected["against"].isin(addresses)]
        if len(frame) or len(expected):
            pd.testing.assert_frame_equal(_plain(frame), _plain(expected), obj=name)

    if is_done.all():
        assert report_files(run.path) == report_files(fresh.path)


def _plain(frame: pd.DataFrame) -> pd.DataFrame:
    text = frame.astype(object).astype(str)
    return text.sort_values([*text.columns], ignore_index=True)


def report_files(folder: Path) -> dict[str, bytes]:
    """The bytes of the tables that a copy of the folder gives, without what is only history."""
    copy = folder.parent / "copy/run"
    shutil.copytree(
        folder, copy, ignore=shutil.ignore_patterns("reports", ".lock", "logs")
    )
    manifest = read_json(copy / "manifest.json") or {}
    kept = {key: manifest[key] for key in ("format", "cells")}
    # the untuned base follows no recipe: it has that of the last call
    for cell in kept["cells"]:
        cell["recipe"] = {} if cell["loss"] == "base" else cell["recipe"]
    history = {"name": "run", "command": "", "created": "2026-01-01T00:00:00+00:00"}
    write_json(copy / "manifest.json", {**kept, **history})
    publishing.write_reports(copy)
    files = sorted((copy / "reports").rglob("*.csv"))
    tables = {str(file.relative_to(copy)): file.read_bytes() for file in files}
    shutil.rmtree(copy.parent)
    assert tables

    return tables


@contextlib.contextmanager
def killed_at(count: int) -> Iterator[None]:
    """Raise Killed in place of the renaming, replacement or removal with this number."""
    countdown = iter(range(count))

    def counted(change: Any) -> Any:
        def call(path: Any, *args: Any, **more: Any) -> None:
            changes_something = Path(path).exists()
            if changes_something and next(countdown, None) is None:
                raise Killed
            change(path, *args, **more)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for module, name in ((os, "rename"), (os, "replace"), (shutil, "rmtree")):
            change = getattr(module, name)
            patch.setattr(module, name, counted(change))
        yield
