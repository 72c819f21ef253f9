"""What each cell of the folders was asked to be; whether a folder says what a fresh one says."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path
from typing import Any

from smmd_bench.publishing.report_stamp import reports_are_current
from smmd_bench.results.frames import RunFrames, read_run
from smmd_bench.storage.current import CurrentCell
from smmd_bench.storage.files import read_json

from .folders import Fresh, Spec, Workshop, experiment_of, files_in, report_files

Addresses = tuple[tuple[str, str], ...]
Asked = tuple[list[str], bool, float, str, int, bool]
"""Losses, base, learning rate, engine, test examples, keep_epochs."""


class Books:
    """The cells that were asked for, by their addresses; the last command of each folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.workshop = Workshop(root / "plugins")
        self.fresh = Fresh(self.workshop, root / "fresh")
        self.asked: dict[Addresses, Spec] = {}
        self.last: dict[str, Asked] = {}

    def ask(self, folder: str, asked: Asked) -> Any:
        """The experiment; its cells are remembered as they are asked for."""
        losses, base, rate, engine, size, keep = asked
        if engine == "stub[flavour=3]" and rate == 0.3:  # two faults: which is met first depends
            rate = 0.2  # on whether the base is in the same command
            asked = (losses, base, rate, engine, size, keep)
        given = (("learning_rate", rate), ("test_examples", size), ("keep_epochs", keep))
        world = self.workshop.world
        spec = Spec("", 0, engine, given, world)
        experiment = experiment_of(losses, base, spec, [0])
        for cell in experiment.cells:
            self.asked[_key(cell.addresses)] = Spec(cell.loss, cell.seed, engine, given, world)
        for spec in [spec for name in ("one", "two") for spec in self.specs(name)]:
            again = Spec(spec.loss, spec.seed, spec.engine, spec.settings, world)
            loss = "ce" if spec.loss == "base" else spec.loss
            for cell in experiment_of([loss], spec.loss == "base", again, [spec.seed]).cells:
                if cell.loss == spec.loss:
                    self.asked.setdefault(_key(cell.addresses), again)
        self.last[folder] = asked
        return experiment

    def is_run(self, folder: str) -> bool:
        return (self.root / folder / "manifest.json").is_file()

    def specs(self, folder: str) -> list[Spec]:
        """What the cells that a folder holds were asked to be, in order."""
        path = self.root / folder
        manifest = read_json(path / "manifest.json") or {"cells": []}
        found = (read_json(path / "cells" / a / "cell.json") or {} for a in manifest["cells"])
        return [self.asked[_key(content["addresses"])] for content in found]

    def roundings(self, folder: str) -> dict[tuple[str, int], int]:
        """Of the machine that trained each cell of a folder."""
        path, trained = self.root / folder, self.workshop.edge.trained
        manifest = read_json(path / "manifest.json") or {"cells": []}
        pairs = zip(manifest["cells"], self.specs(folder), strict=True)
        return {spec.identity: trained.get((str(path), a), 0) for a, spec in pairs}

    def cells(self, run: RunFrames) -> Iterator[tuple[Spec, CurrentCell, int]]:
        """Of each cell of a folder: what it was asked to be, its files, its machine's rounding."""
        roundings = self.roundings(run.path.name)
        for address, spec in zip(run.manifest["cells"], self.specs(run.path.name), strict=True):
            yield spec, run.current(address), roundings.get(spec.identity, 0)

    def require_finished(self, folder: str) -> None:
        """Every cell of the last command is done, with its weights in place, or has failed."""
        _, _, rate, engine, _, keep = self.last[folder]
        experiment = self.ask(folder, self.last[folder])
        found = read_run(self.root / folder)
        status = found.cells.set_index("address")["status"]
        for cell in experiment.cells:
            address = cell.addresses["train"]
            fails = engine == "stub[flavour=3]" or (rate == 0.3 and not cell.is_base)
            assert status[address] == ("failed" if fails else "done"), (cell.label, status)
            if not fails and not cell.is_base:
                now = found.current(address)
                assert now.checkpoint is not None
                assert keep or not (now.folder / "epochs").exists()

    def require_fresh(
        self, path: Path, held: list[Spec], roundings: dict[tuple[str, int], int]
    ) -> None:
        """The reports of a folder, and those on its disk if they count as current, are fresh."""
        found = report_files(path)
        expected = self.fresh.reports(held, roundings, read_run(path))
        different = sorted(
            name for name in {*found, *expected} if found.get(name) != expected.get(name)
        )
        assert not different, _shown(different[0], found, expected)
        if reports_are_current(path):
            stale = [
                name
                for name, content in files_in(path / "reports").items()
                if name != "index.html" and found.get(name) != content
            ]
            assert not stale, f"{stale} count as current"


def _key(addresses: dict[str, str]) -> Addresses:
    return tuple(sorted(addresses.items()))


def _shown(name: str, found: dict[str, bytes], expected: dict[str, bytes]) -> str:
    pair = [
        files.get(name, b"").decode(errors="replace").splitlines() for files in (found, expected)
    ]
    return "\n".join([f"{name} differs:", *unified_diff(*pair, "here", "fresh", n=0, lineterm="")])
