"""After any sequence of commands, a folder says what a fresh one says.

Random sequences over two folders: runs, extensions with other settings and back, tuned losses,
tests of transfer, edits of plugins and of comments, upgrades, another machine, `clean`, a merge and
a kill between any two writes. After every step what is said of the finished cells is what a folder
says in which only these were ever made. The training, the engine and the executor are stubs
(`plugins/edge.py`); everything else is real.
"""

import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from smmd_bench.errors import UserError
from smmd_bench.maintenance.clean import find_run_parts, remove
from smmd_bench.maintenance.merge import merge_runs
from smmd_bench.results.frames import read_run
from smmd_bench.run.run_directory import RunDirectory

from .folders import (
    BROKEN,
    EDITED,
    FAILS,
    VERSIONS,
    Asked,
    Killed,
    Workshop,
    killed_at,
    make_fresh,
    require_equal,
    run,
)

pytestmark = pytest.mark.slow

FOLDERS = st.sampled_from(["one", "two"])
ASKED = st.builds(
    Asked,
    losses=st.lists(
        st.sampled_from(["ce", "mine", "smmd"]), min_size=1, max_size=2, unique=True
    ).map(tuple),
    base=st.booleans(),
    rate=st.sampled_from([0.1, 0.1, 0.2, FAILS]),
    engine=st.sampled_from(["stub", "stub", "stub[flavour=2]", BROKEN]),
    size=st.sampled_from([9, 9, 5]),
    keep=st.booleans(),
    tune=st.sampled_from([
        (), (), (), ("learning_rate=0.1,0.2",), ("learning_rate=0.4,0.2,0.1",),
        ("learning_rate=0.2,0.1,0.3",), ("learning_rate=0.1,0.2", "weight_decay=0,0.1"),
    ]),
    decoders=st.sampled_from([("greedy",), ("greedy",), ("greedy", "mean"), ("greedy", "median")]),
    transfers=st.booleans(),
)  # fmt: skip


class ManyCommands(RuleBasedStateMachine):
    """Two run folders, and what each cell of them was asked to be."""

    def __init__(self):
        super().__init__()
        self.root = Path(tempfile.mkdtemp())
        os.environ["SMMD_BENCH_CACHE"] = str(self.root / "cache")
        self.workshop = Workshop(self.root / "plugins")
        self.asked = {}
        self.touched = set()
        self.count = 0

    def teardown(self):
        self.workshop.close()
        shutil.rmtree(self.root)

    def remember(self, asked):
        """Remember what each cell is, as it is asked for in this world."""
        world = self.workshop.world
        for cell in asked.experiment.cells:
            if cell.trial is None:
                self.asked[key_of(cell.address, cell.parts)] = (
                    asked,
                    world,
                    cell.loss,
                    cell.task,
                )

        # Cells of earlier commands may be measured anew.
        for earlier, _, loss, task in [*self.asked.values()]:
            with suppress(ValueError):  # it has no such cell here
                (*_, cell) = earlier.alone(loss, task)
                key = key_of(cell.address, cell.parts)
                self.asked.setdefault(key, (earlier, world, loss, task))

    # ---- commands

    @rule(folder=FOLDERS, asked=ASKED)
    def train_eval(self, folder, asked):
        if asked.engine == BROKEN and FAILS in (asked.rate, 0.3):  # two faults at once
            tune = tuple(text.replace(f",{FAILS}", "") for text in asked.tune)
            asked = replace(asked, rate=0.2, tune=tune)

        self.touched.add(folder)
        self.remember(asked)

        path = self.root / folder
        planned = RunDirectory(path).missing(asked.experiment.cells)
        trained_before = len(self.workshop.edge.trainings)
        outcome = run(asked, path)

        assert bool(outcome.failed) == asked.fails, outcome.failed

        if asked.fails:
            return

        # The plan said which trainings there would be.
        to_train = {
            cell.parts["train"] for cell, stage in planned.items() if stage == "train"
        }
        assert sorted(self.workshop.edge.trainings[trained_before:]) == sorted(to_train)
        self.require_finished(path, asked)
        assert not run(asked, path).worked

    def require_finished(self, path, asked):
        """What is asked for is done, and the weights of one epoch are kept, or of both."""
        status = read_run(path).cells.set_index("address")["status"]
        rows = [cell for cell in asked.experiment.cells if cell.trial is None]
        for cell in rows:
            assert status[cell.address] == "done"
            if not cell.is_base and "train" in cell.parts:
                epochs = [*(cell.stored(path).trained / "epochs").glob("*")]
                assert len(epochs) <= (2 if asked.keep else 1)

    @rule(folder=FOLDERS, asked=ASKED, count=st.integers(0, 60))
    def killed_train_eval(self, folder, asked, count):
        self.touched.add(folder)
        self.remember(asked)
        with suppress(Killed, UserError), killed_at(count):
            run(asked, self.root / folder)

    @rule(folder=FOLDERS, part=st.sampled_from(["leftovers", "weights"]))
    def clean(self, folder, part):
        if self.is_run(folder):
            for found in find_run_parts(self.root / folder):
                if found.name == part:
                    remove(found.paths)
            self.touched.add(folder)

    @precondition(lambda self: self.is_run("one") and self.is_run("two"))
    @rule()
    def merge(self):
        runs = [self.root / "one", self.root / "two"]
        out = self.root / f"merged{self.count}"
        with suppress(UserError):
            merge_runs(runs, out)
            trained = self.workshop.edge.trained
            for (place, name), rounding in [*trained.items()]:
                if place == str(runs[1]):
                    trained.setdefault((str(out), name), rounding)
                if place == str(runs[0]):
                    trained[str(out), name] = rounding
            self.require_fresh(out)

        shutil.rmtree(out, ignore_errors=True)

    # ---- what happens between commands

    @rule(plugin=st.sampled_from(sorted(EDITED)), number=st.integers(0, 2))
    def edit_a_plugin(self, plugin, number):
        self.workshop.enter(self.workshop.world.edited(plugin, number))

    @rule(plugin=st.sampled_from(sorted(EDITED)))
    def edit_a_comment(self, plugin):
        number = dict(self.workshop.world.edits)[plugin]
        self.workshop.write(plugin, number, comment=f"# {len(self.asked)}")

    @rule(what=st.sampled_from(VERSIONS), number=st.integers(1, 2))
    def upgrade(self, what, number):
        self.workshop.enter(self.workshop.world.upgraded(what, number))

    @rule(rounding=st.integers(0, 1))
    def move_to_another_machine(self, rounding):
        self.workshop.edge.machine["rounding"] = rounding

    # ---- what must hold

    @invariant()
    def folders_say_what_fresh_ones_say(self):
        for folder in sorted(self.touched):
            if self.is_run(folder):
                self.require_fresh(self.root / folder)
        self.touched.clear()

    def require_fresh(self, path):
        """A folder says what one says in which only its cells were made."""
        self.count += 1
        run = read_run(path)
        status = run.cells.set_index("address")["status"]
        finished = []
        for record in run.manifest["cells"]:
            if status[record["address"]] == "done":
                finished.append(self.asked[key_of(record["address"], record["parts"])])

        trained = self.workshop.edge.trained.items()
        rounding = {
            name: value for (place, name), value in trained if place == str(path)
        }
        fresh = make_fresh(
            self.workshop, self.root / f"fresh{self.count}/run", finished, rounding
        )
        require_equal(run, fresh)
        shutil.rmtree(fresh.path.parent)

    def is_run(self, folder):
        return (self.root / folder / "manifest.json").is_file()


def key_of(address, parts):
    """What a cell's folders follow from, to look it up by."""
    return address, *sorted(parts.items())


EXAMPLES = int(os.environ.get("SMMD_BENCH_SEQUENCES", "6"))
ManyCommands.TestCase.settings = settings(
    max_examples=EXAMPLES, stateful_step_count=12, derandomize=True, database=None,
    suppress_health_check=list(HealthCheck), print_blob=False,
    phases=[Phase.explicit, Phase.generate],  # to shrink a failure takes many minutes
)  # fmt: skip
TestManyCommands = ManyCommands.TestCase
