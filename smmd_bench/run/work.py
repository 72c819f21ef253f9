"""Doing what cells miss: one schedule for those that are trained, then one for the tuned ones.

A tuned cell tests the best of its trials, so it waits until all of them are trained and validated.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..contracts import Executor, Progress
from ..experiment.cell import Cell
from .engine_trials import try_engines
from .lease import Leases
from .run_directory import Outcome, RunDirectory, record_failure
from .schedule import Schedule, home_of, record_following, settle_all

_SECONDS = 2.0
_ENDED = "a process that has ended since"
_TRIALS = "those that do its trials, not all of which are done"


@dataclass(frozen=True)
class Work:
    """Does the missing stages of an experiment's cells."""

    run: RunDirectory
    runner: Executor
    progress: Progress
    leases: Leases
    track: str | None

    def finish(
        self,
        cells: Sequence[Cell],
        broken: Mapping[Cell, Exception],
        outcome: Outcome,
        *,
        waits: bool = True,
    ) -> None:
        """Train, decode and measure what is missing, without `broken` cells; add to `outcome`.

        waits: until other processes have done, or left, what they work on.
        """
        run = self.run
        for cell in (cell for cell in cells if cell in broken):
            record_failure(run.cell_folder(cell), "decode", broken[cell])
        given_up = {c for c in cells if c in broken or run.failure(c).get("skipped")}
        todo = [cell for cell in cells if cell not in given_up and run.missing(cell)]
        outcome.worked |= bool(todo)
        plain = [cell for cell in todo if not cell.grid]
        if waits:  # other processes of `work` would each try the same
            refused = try_engines(run, plain, self.runner, self.progress, self.leases)
            plain = [cell for cell in plain if cell not in refused]
        left = self._do_all(plain, waits=waits)
        ready, waiting = self._chosen([cell for cell in todo if cell.grid])
        left += self._do_all(ready, waits=waits)
        outcome.elsewhere |= {c.label: self.leases.holder(home_of(c)) or _ENDED for c in left}
        if not waits:
            outcome.elsewhere |= {
                c.label: self.leases.holder(home_of(c)) or _TRIALS for c in waiting
            }
            left += waiting
        outcome.notes |= {cell.label: run.notes(cell) for cell in cells}
        unfinished = given_up.union(cell for cell in todo if run.missing(cell))
        no_reason = {"stage": "run", "error": f"left no reason, see {run.path / 'logs'}"}
        for cell in (cell for cell in cells if cell in unfinished and cell not in left):
            failure = run.failure(cell) or no_reason
            reasons = outcome.skipped if failure.get("skipped") else outcome.failed
            reasons[cell.label] = f"{failure['stage']}: {failure['error']}"

    def do(self, cells: Sequence[Cell]) -> list[Cell]:
        """Do what these cells miss; returns those that are left to other processes."""
        if not cells:
            return []
        schedule = Schedule(self.run, cells, self.runner.slots, self.leases, self.track)
        for result in self.runner.run(schedule, self.run.path, self.progress):
            schedule.end(result)
        return schedule.elsewhere

    def _do_all(self, cells: Sequence[Cell], *, waits: bool) -> list[Cell]:
        """The same; `waits` until other processes have done, or left, what they work on."""
        left = self.do(cells)
        while left and waits:
            if (holder := self.leases.holder(home_of(left[0]))) is not None:
                self.progress(f"{len(left)} cells are left to other processes, as {holder}", 0, 0)
            while self.leases.holder(home_of(left[0])) is not None:
                time.sleep(_SECONDS)
            left = self.do(left)
        return left

    def _chosen(self, tuned: Sequence[Cell]) -> tuple[list[Cell], list[Cell]]:
        """Choose among the trials of tuned cells: those that can be tested, and those that wait.

        One with a trial that failed fails with it: its budget would be smaller than the others'.
        """
        broken = settle_all(self.run, tuned)
        ready, waiting = [], []
        for cell in tuned:
            now = self.run.current(cell)
            home = now.home
            failed = [(trial, f) for trial in cell.owner.trials if (f := self.run.failure(trial))]
            folder = self.run.cell_folder(cell)
            if cell.owner in broken:
                record_failure(folder, "decode", broken[cell.owner])
            elif now.is_decoded or (home is not None and home.checkpoint is not None):
                ready.append(cell)
            elif failed:
                trial, failure = failed[0]
                record_following(folder, failure, f"in the trial {trial.short_label}")
            else:
                waiting.append(cell)
        return ready, waiting
