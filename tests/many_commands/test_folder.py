"""After any sequence of commands, a folder says what a fresh one says.

Random sequences over two folders: runs, extensions with other settings and back, edits of plugins
and of comments, upgrades, another machine, `clean`, `report`, a merge, a copied cell, and a kill
between any two writes. After every step the reports are, byte for byte but for the history, those
of a fresh folder in which only the current cells were ever made. The training, the engine and the
executor are stubs (`plugins/edge.py`); everything else is real.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from smmd_bench.cleaning.part import PARTS, remove
from smmd_bench.cleaning.run_parts import run_parts
from smmd_bench.combining.merge import merge_runs
from smmd_bench.errors import UserError
from smmd_bench.publishing.run import is_published, publish_run
from smmd_bench.publishing.selection import publish_some
from smmd_bench.results.files import read_json
from smmd_bench.results.run import read_run

from .folders import (
    EDITED,
    VERSIONS,
    Fresh,
    Killed,
    Spec,
    Workshop,
    experiment_of,
    files_in,
    killed_at,
    report_files,
    run,
)

FOLDERS = st.sampled_from(["one", "two"])
LOSSES = st.lists(st.sampled_from(["ce", "mine", "smmd"]), min_size=1, max_size=2, unique=True)
RATES = st.sampled_from([0.1, 0.1, 0.2, 0.3])
ENGINES = st.sampled_from(["stub", "stub", "stub[flavour=2]", "stub[flavour=3]"])
SIZES = st.sampled_from([9, 9, 5])
Addresses = tuple[tuple[str, str], ...]


class ManyCommands(RuleBasedStateMachine):
    """Two run folders, and what each cell of them was asked to be."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp())
        os.environ["SMMD_BENCH_CACHE"] = str(self.root / "cache")
        self.workshop = Workshop(self.root / "plugins")
        self.fresh = Fresh(self.workshop, self.root / "fresh")
        self.asked: dict[Addresses, Spec] = {}
        self.touched: set[str] = set()
        self.last: dict[str, Any] = {}

    def teardown(self) -> None:
        self.workshop.close()
        shutil.rmtree(self.root)

    # ---- commands

    @rule(
        folder=FOLDERS, losses=LOSSES, base=st.booleans(), rate=RATES, engine=ENGINES, size=SIZES,
        keep=st.booleans(),
    )  # fmt: skip
    def train_eval(
        self, folder: str, losses: list[str], base: bool, rate: float, engine: str, size: int,
        keep: bool,
    ) -> None:  # fmt: skip
        outcome = run(self.ask(folder, losses, base, rate, engine, size, keep), self.root / folder)
        assert bool(outcome.failed) == (engine == "stub[flavour=3]" or rate == 0.3)
        self.require_finished(folder)

    @rule(
        folder=FOLDERS, losses=LOSSES, rate=RATES, engine=ENGINES, size=SIZES,
        count=st.integers(0, 40),
    )  # fmt: skip
    def killed_train_eval(
        self, folder: str, losses: list[str], rate: float, engine: str, size: int, count: int
    ) -> None:
        experiment = self.ask(folder, losses, True, rate, engine, size, False)
        try:
            with killed_at(count):
                run(experiment, self.root / folder)
        except Killed:
            pass

    @precondition(lambda self: self.last)
    @rule(folder=FOLDERS)
    def the_same_again(self, folder: str) -> None:
        if folder not in self.last:
            return
        losses, base, rate, engine, size, keep = self.last[folder]
        self.train_eval(folder, losses, base, rate, engine, size, keep)
        if rate != 0.3 and engine != "stub[flavour=3]":
            experiment = self.ask(folder, losses, base, rate, engine, size, keep)
            assert not run(experiment, self.root / folder).worked

    @precondition(lambda self: self.held())
    @rule(folder=FOLDERS, part=st.sampled_from(sorted(p for p in PARTS if "cache" not in p)))
    def clean(self, folder: str, part: str) -> None:
        if self.is_run(folder):
            for found in run_parts(self.root / folder):
                if found.name == part:
                    remove(found.paths)
            self.touched.add(folder)

    @precondition(lambda self: self.held())
    @rule(folder=FOLDERS, count=st.one_of(st.just(10**6), st.integers(0, 12)))
    def report(self, folder: str, count: int) -> None:
        if self.is_run(folder):
            try:
                with killed_at(count):
                    publish_run(self.root / folder)
                assert is_published(self.root / folder)
            except Killed:
                pass
            self.touched.add(folder)

    @precondition(lambda self: self.held())
    @rule(folder=FOLDERS)
    def report_only(self, folder: str) -> None:
        if self.is_run(folder):
            publish_some(self.root / folder, ["everything"], ("csv",))
            self.touched.add(folder)

    @precondition(lambda self: self.held())
    @rule(source=FOLDERS, which=st.integers(0, 5))
    def copy_a_cell(self, source: str, which: int) -> None:
        target = {"one": "two", "two": "one"}[source]
        if not self.is_run(source) or not self.is_run(target):
            return
        cells = list(read_run(self.root / source).cells["address"])
        address = cells[which % len(cells)]
        place = self.root / target / "cells" / address
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(self.root / source / "cells" / address, place)
        trained = self.workshop.edge.trained
        if (str(self.root / source), address) in trained:
            trained[str(self.root / target), address] = trained[str(self.root / source), address]
        self.touched.add(target)

    # ---- what happens between commands

    @rule(plugin=st.sampled_from(sorted(EDITED)), number=st.integers(0, 2))
    def edit_a_plugin(self, plugin: str, number: int) -> None:
        self.workshop.enter(self.workshop.world.edited(plugin, number))
        self.touched |= {"one", "two"} if plugin == "everything.py" else set()

    @rule(plugin=st.sampled_from(["toy_task.py", "mine.py"]))
    def edit_a_comment(self, plugin: str) -> None:
        number = dict(self.workshop.world.edits)[plugin]
        self.workshop.write(plugin, number, comment=f"# {len(self.asked)}")

    @rule(what=st.sampled_from(VERSIONS), number=st.integers(1, 2))
    def upgrade(self, what: str, number: int) -> None:
        self.workshop.enter(self.workshop.world.upgraded(what, number))

    @rule(rounding=st.integers(0, 1))
    def move_to_another_machine(self, rounding: int) -> None:
        self.workshop.edge.machine["rounding"] = rounding

    # ---- what must hold

    @invariant()
    def reports_are_those_of_a_fresh_folder(self) -> None:
        for folder in sorted(self.touched):
            if self.is_run(folder):
                self.require_fresh(self.root / folder, self.specs(folder), self.roundings(folder))
        self.touched.clear()

    @precondition(lambda self: self.is_run("one") and self.is_run("two"))
    @rule()
    def merge(self) -> None:
        runs = [self.root / "one", self.root / "two"]
        out = self.root / "merged"
        frames = [read_run(path) for path in runs]
        if any(frame.cells.empty for frame in frames):
            return
        held: dict[Any, Spec] = {}
        roundings: dict[Any, int] = {}
        done: dict[Any, bool] = {}
        conflict = False
        for path, frame in zip(runs, frames, strict=True):
            own = self.roundings(path.name)
            status = list(frame.cells["status"] == "done")
            order = [str(a) for a in frame.manifest["cells"]]
            by_address = dict(zip(frame.cells["address"], status, strict=True))
            for address, spec in zip(order, self.specs(path.name), strict=True):
                key, is_done = spec.identity, by_address[address]
                mine = frame.current(address)
                if key not in held:
                    held[key], done[key] = spec, is_done
                    roundings[key] = own.get(key, 0)
                    self.__dict__.setdefault("tested", {})[key] = mine
                    continue
                other = self.__dict__["tested"][key]
                conflict |= mine.addresses != other.addresses
                conflict |= is_done and done[key] and mine.tested != other.tested
                if is_done and not done[key]:
                    held[key], done[key], roundings[key] = spec, True, own.get(key, 0)
                    self.__dict__["tested"][key] = mine
        self.__dict__.pop("tested", None)
        if conflict:
            try:
                merge_runs(runs, out)
            except UserError:
                return
            raise AssertionError("two different results of one cell were merged")
        merge_runs(runs, out)
        self.require_fresh(out, list(held.values()), roundings)

    # ---- helpers

    def ask(
        self, folder: str, losses: list[str], base: bool, rate: float, engine: str, size: int,
        keep: bool,
    ) -> Any:  # fmt: skip
        """The experiment; its cells are remembered as they are asked for."""
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
        self.last[folder] = (losses, base, rate, engine, size, keep)
        self.touched.add(folder)
        return experiment

    def is_run(self, folder: str) -> bool:
        return (self.root / folder / "manifest.json").is_file()

    def held(self) -> bool:
        return self.is_run("one") or self.is_run("two")

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

    def require_finished(self, folder: str) -> None:
        """Every cell of the last command is done, with its weights in place, or has failed."""
        losses, base, rate, engine, size, keep = self.last[folder]
        experiment = self.ask(folder, losses, base, rate, engine, size, keep)
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
        if is_published(path):
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
    lines = [set(pair[0]) ^ set(pair[1])]
    mine = "\n".join(f"  here  {line[:300]}" for line in pair[0] if line in lines[0])
    fresh = "\n".join(f"  fresh {line[:300]}" for line in pair[1] if line in lines[0])
    return f"{name} differs:\n{mine}\n{fresh}"


EXAMPLES = int(os.environ.get("SMMD_BENCH_SEQUENCES", "6"))
ManyCommands.TestCase.settings = settings(
    max_examples=EXAMPLES, stateful_step_count=12, deadline=None, derandomize=True, database=None,
    suppress_health_check=list(HealthCheck), print_blob=False,
)  # fmt: skip
TestManyCommands = ManyCommands.TestCase
