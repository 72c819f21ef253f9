"""After any sequence of commands, a folder says what a fresh one says.

Random sequences over two folders: runs, extensions with other settings and back, edits of plugins
and of comments, upgrades, another machine, `clean`, `report`, `score`, a merge, a copied cell, a
storage, and a kill between any two writes. After every step the reports are, byte for byte but for
the history, those of a fresh folder in which only the current cells were ever made. The training,
the engine and the executor are stubs (`plugins/edge.py`); everything else is real.
"""

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from smmd_bench.errors import UserError
from smmd_bench.publishing.write_reports import write_reports, write_some_reports
from smmd_bench.results.frames import read_run
from smmd_bench.run.merge import merge_runs
from smmd_bench.run.predictions import score_predictions
from smmd_bench.run.removal import PARTS, remove, run_parts
from smmd_bench.run.staging import fetch_run, put_run
from smmd_bench.storage.current import CurrentCell
from smmd_bench.storage.files import write_text
from smmd_bench.storage.run_storage import RunStorage

from .books import Books, fails
from .folders import EDITED, VERSIONS, Killed, Spec, killed_at, run
from .report_files import report_files

pytestmark = pytest.mark.slow

FOLDERS = st.sampled_from(["one", "two"])
LOSSES = st.lists(st.sampled_from(["ce", "mine", "smmd"]), min_size=1, max_size=2, unique=True)
RATES = st.sampled_from([0.1, 0.1, 0.2, 0.3])
ENGINES = st.sampled_from(["stub", "stub", "stub[flavour=2]", "stub[flavour=3]"])
SIZES = st.sampled_from([9, 9, 5])
TUNE = st.sampled_from([
    (), (), (), ("learning_rate=0.1,0.2",), ("learning_rate=0.4,0.2,0.1",),
    ("learning_rate=0.2,0.1,0.3",), ("learning_rate=0.1,0.2", "weight_decay=0,0.1"),
])  # fmt: skip
DECODERS = st.sampled_from([
    ("greedy",), ("greedy",), ("greedy",), ("greedy", "mean"), ("greedy", "mean", "median")
])  # fmt: skip


class ManyCommands(RuleBasedStateMachine):
    """Two run folders, and what each cell of them was asked to be."""

    def __init__(self):
        super().__init__()
        self.root = Path(tempfile.mkdtemp())
        os.environ["SMMD_BENCH_CACHE"] = str(self.root / "cache")
        self.books = Books(self.root)
        self.workshop = self.books.workshop
        self.touched: set[str] = set()

    def teardown(self):
        self.workshop.close()
        shutil.rmtree(self.root)

    # ---- commands

    @rule(
        folder=FOLDERS, losses=LOSSES, base=st.booleans(), rate=RATES, engine=ENGINES, size=SIZES,
        keep=st.booleans(), tune=TUNE, decoders=DECODERS,
    )  # fmt: skip
    def train_eval(
        self, folder, losses, base, rate, engine, size,
        keep, tune=(), decoders=("greedy",),
    ):  # fmt: skip
        self.touched.add(folder)
        experiment = self.books.ask(
            folder, (losses, base, rate, engine, size, keep, tune, decoders)
        )
        outcome = run(experiment, self.root / folder)
        failed = engine == "stub[flavour=3]" or any(map(fails, experiment.cells))
        assert bool(outcome.failed) == failed
        self.books.require_finished(folder)

    @rule(
        folder=FOLDERS, losses=LOSSES, rate=RATES, engine=ENGINES, size=SIZES,
        count=st.integers(0, 60), tune=TUNE, decoders=DECODERS,
    )  # fmt: skip
    def killed_train_eval(
        self, folder, losses, rate, engine, size, count, tune=(), decoders=("greedy",)
    ):
        self.touched.add(folder)
        experiment = self.books.ask(
            folder, (losses, True, rate, engine, size, False, tune, decoders)
        )
        with suppress(Killed), killed_at(count):
            run(experiment, self.root / folder)

    @precondition(lambda self: self.books.last)
    @rule(folder=FOLDERS)
    def the_same_again(self, folder):
        if folder not in self.books.last:
            return
        asked = self.books.last[folder]
        self.train_eval(folder, *asked)
        again = self.books.ask(folder, asked)
        if asked[3] != "stub[flavour=3]" and not any(map(fails, again.cells)):
            assert not run(again, self.root / folder).worked

    @precondition(lambda self: self.held())
    @rule(folder=FOLDERS, part=st.sampled_from(sorted(p for p in PARTS if "cache" not in p)))
    def clean(self, folder, part):
        if self.is_run(folder):
            for found in run_parts(self.root / folder):
                if found.name == part:
                    remove(found.paths)
                    self.books.cleaned |= {folder} if part == "checkpoints" else set()
            self.touched.add(folder)

    @precondition(lambda self: self.held())
    @rule(folder=FOLDERS, count=st.one_of(st.just(10**6), st.integers(0, 12)))
    def report(self, folder, count):
        if self.is_run(folder):
            with suppress(Killed), killed_at(count):
                write_reports(self.root / folder)
            self.touched.add(folder)

    @precondition(lambda self: self.held())
    @rule(folder=FOLDERS)
    def report_only(self, folder):
        if self.is_run(folder):
            write_some_reports(self.root / folder, ["everything"], ("csv",))
            self.touched.add(folder)

    @precondition(lambda self: self.held())
    @rule(source=FOLDERS, which=st.integers(0, 5))
    def copy_a_cell(self, source, which):
        target = {"one": "two", "two": "one"}[source]
        if not self.is_run(source) or not self.is_run(target):
            return
        cells = list(read_run(self.root / source).cells["address"])
        address = cells[which % len(cells)]
        place = self.root / target / "cells" / address
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(self.root / source / "cells" / address, place)
        self.books.cleaned |= {target} if source in self.books.cleaned else set()
        trained = self.workshop.edge.trained
        if (str(self.root / source), address) in trained:
            trained[str(self.root / target), address] = trained[str(self.root / source), address]
        self.touched.add(target)

    @precondition(lambda self: self.held())
    @rule(folder=FOLDERS, count=st.integers(0, 40))
    def through_a_storage(self, folder, count):
        """Put into a storage, lost here, and fetched; a first try is killed."""
        run_folder = self.root / folder
        if self.is_run(folder):
            storage = RunStorage(f"file://{self.root / 'storage' / folder}")
            put_run(storage, run_folder)
            shutil.rmtree(run_folder / "cells")
            with suppress(Killed), killed_at(count):
                fetch_run(storage, run_folder, weights=True)
            fetch_run(storage, run_folder, weights=True)
            self.touched.add(folder)

    @rule(answers=st.lists(st.sampled_from(["0", "1", "none"]), min_size=2, max_size=2))
    def score(self, answers):
        """Completions made elsewhere, in a folder of their own; others than before, perhaps."""
        files = [self.root / "old.jsonl", self.root / "new.jsonl"]
        for file, answer in zip(files, answers, strict=True):
            lines = [f'{{"id": "test-{at}", "completion": "{answer}"}}' for at in range(9)]
            write_text(file, "\n".join(lines))
        places = [self.root / "scored", self.root / "once" / "scored"]
        for place in places:
            score_predictions("toy", files, out=place)
        assert report_files(places[0]) == report_files(places[1])
        shutil.rmtree(places[1])

    # ---- what happens between commands

    @rule(plugin=st.sampled_from(sorted(EDITED)), number=st.integers(0, 2))
    def edit_a_plugin(self, plugin, number):
        self.workshop.enter(self.workshop.world.edited(plugin, number))
        self.touched |= {"one", "two"} if plugin == "everything.py" else set()

    @rule(plugin=st.sampled_from(["toy_task.py", "mine.py"]))
    def edit_a_comment(self, plugin):
        number = dict(self.workshop.world.edits)[plugin]
        self.workshop.write(plugin, number, comment=f"# {len(self.books.asked)}")

    @rule(what=st.sampled_from(VERSIONS), number=st.integers(1, 2))
    def upgrade(self, what, number):
        self.workshop.enter(self.workshop.world.upgraded(what, number))

    @rule(rounding=st.integers(0, 1))
    def move_to_another_machine(self, rounding):
        self.workshop.edge.machine["rounding"] = rounding

    # ---- what must hold

    @invariant()
    def reports_are_those_of_a_fresh_folder(self):
        for folder in sorted(self.touched):
            if self.is_run(folder):
                specs, roundings = self.books.specs(folder), self.books.roundings(folder)
                if specs:  # a command that was killed before its first cell leaves none
                    self.books.require_fresh(self.root / folder, specs, roundings)
        self.touched.clear()

    @precondition(lambda self: self.is_run("one") and self.is_run("two"))
    @rule()
    def merge(self):
        runs, out = [self.root / "one", self.root / "two"], self.root / "merged"
        frames = [read_run(path) for path in runs]
        if any(frame.cells.empty for frame in frames):
            return
        chosen: dict[tuple[str, int], tuple[Spec, CurrentCell, int]] = {}
        conflict = False
        ordered = []
        for frame in frames:  # as the tables have the cells, which a merge follows
            place = {str(address): at for at, address in enumerate(frame.cells["address"])}
            ordered += sorted(self.books.cells(frame), key=lambda f: place[f[1].folder.name])
        for found in ordered:
            (spec, cell, _), first = found, chosen.setdefault(found[0].identity, found)
            done = cell.metrics is not None, first[1].metrics is not None
            conflict |= cell.addresses != first[1].addresses
            conflict |= all(done) and cell.tested != first[1].tested
            if done == (True, False):
                chosen[spec.identity] = found
        places = {cell.folder.name: cell for _, cell, _ in chosen.values()}
        for trial in [trial for cell in places.values() for trial in cell.trials]:
            first_trial = places.setdefault(trial.folder.name, trial)
            if first_trial.tested is None:
                places[trial.folder.name] = trial
            conflict |= trial.tested not in (None, places[trial.folder.name].tested)
        if conflict:
            with pytest.raises(UserError, match="have different cells"):
                merge_runs(runs, out)
            return
        merge_runs(runs, out)
        trained = self.workshop.edge.trained
        roundings = {
            key: trained.get((str(places[name].folder.parents[1]), name), 0)
            for spec, cell, _ in chosen.values()
            for name in (cell.folder.name, *(trial.folder.name for trial in cell.trials))
            for key in ((name, 0), *([spec.identity] if name == cell.folder.name else []))
        }
        self.books.require_fresh(out, [spec for spec, _, _ in chosen.values()], roundings)

    def is_run(self, folder):
        return self.books.is_run(folder)

    def held(self):
        return self.is_run("one") or self.is_run("two")


EXAMPLES = int(os.environ.get("SMMD_BENCH_SEQUENCES", "6"))
ManyCommands.TestCase.settings = settings(
    max_examples=EXAMPLES, stateful_step_count=12, derandomize=True, database=None,
    suppress_health_check=list(HealthCheck), print_blob=False,
    phases=[Phase.explicit, Phase.generate],  # to shrink a failure takes many minutes
)  # fmt: skip
TestManyCommands = ManyCommands.TestCase
