"""What each cell of the folders was asked to be; whether a folder says what a fresh one says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from difflib import unified_diff
from pathlib import Path
from typing import Any

from smmd_bench.experiment.cell import Cell
from smmd_bench.results.frames import RunFrames, read_run
from smmd_bench.storage.current import CurrentCell
from smmd_bench.storage.files import read_json
from smmd_bench.storage.manifest import is_row

from .folders import Fresh, Spec, Workshop, experiment_of
from .report_files import report_files

Addresses = tuple[tuple[str, str], ...]
Asked = tuple[list[str], bool, float, str, int, bool, tuple[str, ...], tuple[str, ...]]
"""Losses, base, learning rate, engine, test examples, keep_epochs, --tune, --decoders."""
FAILS = 0.3
"""The learning rate with which every training fails."""


def fails(cell: Cell) -> bool:
    """Whether a cell fails with its training, or that of a trial."""
    own = not (cell.is_base or cell.grid) and cell.recipe.learning_rate == FAILS
    return own or any(trial.recipe.learning_rate == FAILS for trial in cell.trials)


class Books:
    """The cells that were asked for, by their addresses; the train addresses of those that were
    tested anywhere; the last command of each folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.workshop = Workshop(root / "plugins")
        self.fresh = Fresh(self.workshop, root / "fresh")
        self.asked: dict[Addresses, Spec] = {}
        self.rows: set[str] = set()
        self.last: dict[str, Asked] = {}
        self.cleaned: set[str] = set()  # folders that may lack weights of what is measured

    def ask(self, folder: str, asked: Asked) -> Any:
        """The experiment; its cells are remembered as they are asked for."""
        losses, base, rate, engine, size, keep, tune, decoders = asked
        if engine == "stub[flavour=3]":  # two faults: which is met first depends on whether the
            rate = 0.2 if rate == FAILS else rate  # base is in the same command
            tune = tuple(text.replace(f",{FAILS}", "") for text in tune)
            asked = (losses, base, rate, engine, size, keep, tune, decoders)
        given = (("learning_rate", rate), ("test_examples", size), ("keep_epochs", keep))
        world = self.workshop.world
        spec = Spec("", 0, engine, given, world, tune, decoders)
        experiment = experiment_of(losses, base, spec, [0])
        for cell in (cell for cell in experiment.cells if cell.trial is None):
            asked_for = replace(spec, loss=cell.loss, seed=cell.seed)
            self.asked[_key(cell.addresses)] = asked_for
            self.rows.add(cell.addresses["train"])
        for spec in [spec for name in ("one", "two") for spec in self.specs(name)]:
            again = replace(spec, world=world)
            _, (*_, cell) = again.alone()
            self.asked.setdefault(_key(cell.addresses), again)
        self.last[folder] = asked
        return experiment

    def is_run(self, folder: str) -> bool:
        return (self.root / folder / "manifest.json").is_file()

    def specs(self, folder: str) -> list[Spec]:
        """What the cells that a folder holds were asked to be, in order."""
        return [self.asked[_key(content["addresses"])] for content in self._rows(folder)]

    def _rows(self, folder: str) -> list[dict[str, Any]]:
        """The cell.json of each row of the tables."""
        cells = self.root / folder / "cells"
        manifest = read_json(cells.parent / "manifest.json") or {"cells": []}
        found = (read_json(cells / address / "cell.json") or {} for address in manifest["cells"])
        return [content for content in found if is_row(cells, content)]

    def roundings(self, folder: str) -> dict[tuple[str, int], int]:
        """Of the machine that trained each cell of a folder, and each trial, by its address."""
        path, trained = str(self.root / folder), self.workshop.edge.trained
        rows = self._rows(folder)
        pairs = zip(rows, self.specs(folder), strict=True)
        found = {spec.identity: trained.get((path, c["address"]), 0) for c, spec in pairs}
        tried = [address for content in rows for address in content.get("trials", ())]
        return found | {(a, 0): trained.get((path, a), 0) for a in tried}

    def cells(self, run: RunFrames) -> Iterator[tuple[Spec, CurrentCell, int]]:
        """Of each cell of a folder: what it was asked to be, its files, its machine's rounding."""
        roundings = self.roundings(run.path.name)
        rows = self._rows(run.path.name)
        for content, spec in zip(rows, self.specs(run.path.name), strict=True):
            yield spec, run.current(content["address"]), roundings.get(spec.identity, 0)

    def require_finished(self, folder: str) -> None:
        """Every cell of the last command is done, with its weights unless they were removed, or has
        failed."""
        _, _, _, engine, _, keep, *_ = self.last[folder]
        experiment = self.ask(folder, self.last[folder])
        found = read_run(self.root / folder)
        status = found.cells.set_index("address")["status"].to_dict()
        trials = found.tuning.set_index("trial")["trial_status"].to_dict()
        for cell in experiment.cells:
            address = cell.addresses["train"]
            failed = engine == "stub[flavour=3]" or fails(cell)
            state = {**trials, **status}[address]
            assert state == ("failed" if failed else "done"), (cell.label, state)
            now = cell.files(self.root / folder)
            if cell.trial is not None and address not in self.rows:
                assert not (now.folder / "completions.parquet").exists()
            if not failed and not cell.is_base:
                assert now.checkpoint is not None or folder in self.cleaned
                assert keep or not (now.folder / "epochs").exists()

    def require_fresh(
        self, path: Path, held: list[Spec], roundings: dict[tuple[str, int], int]
    ) -> None:
        """The reports of a folder are those of a fresh one."""
        found = report_files(path)
        expected = self.fresh.reports(held, roundings, read_run(path))
        different = sorted(
            name for name in {*found, *expected} if found.get(name) != expected.get(name)
        )
        assert not different, _shown(different[0], found, expected)


def _key(addresses: dict[str, str]) -> Addresses:
    return tuple(sorted(addresses.items()))


def _shown(name: str, found: dict[str, bytes], expected: dict[str, bytes]) -> str:
    pair = [
        files.get(name, b"").decode(errors="replace").splitlines() for files in (found, expected)
    ]
    return "\n".join([f"{name} differs:", *unified_diff(*pair, "here", "fresh", n=0, lineterm="")])
