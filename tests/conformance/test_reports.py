"""Each defect of a report is found; reports here pass on empty, one-cell and full runs."""

import itertools
from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd
import pytest

from smmd_bench.conformance.generated_runs import GeneratedRuns
from smmd_bench.conformance.reports import REPORT_CHECKS, Tried
from smmd_bench.contracts import Artefact
from smmd_bench.plugin_system.registry import load
from smmd_bench.results.frames import RunFrames, read_run

_calls = itertools.count()


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return GeneratedRuns(tmp_path_factory.mktemp("generated"))


@dataclass(frozen=True)
class Good:
    """How many metrics a run has."""

    name: ClassVar[str] = "good"
    title: ClassVar[str] = "Good"
    paper: ClassVar[str] = "not in the paper"

    def skip(self, run: RunFrames) -> str | None:
        return "no metrics" if run.metrics.empty else None

    def build(self, run: RunFrames) -> Artefact:
        return Artefact("A count.", pd.DataFrame({"n": [len(run.metrics)]}))


def but(**methods):
    """The good report, but for these methods."""
    return type("Changed", (Good,), methods)()


def shows(value, caption="A caption."):
    """The good report with a table of one value."""
    return but(build=lambda _, run: Artefact(caption, pd.DataFrame({"x": [value(run)]})))


def name_the_task(self, run):
    return str(run.cells["task"].iloc[0]) and Good.skip(self, run)


def change_the_run(self, run):
    run.metrics["value"] = 0.0
    return Good.build(self, run)


class SkipsAll(Good):
    def skip(self, run: RunFrames) -> str | None:
        return "it is for another kind of run"


def states(report: Any, runs: GeneratedRuns) -> dict[str, str]:
    return {finding.check: finding.state for finding in REPORT_CHECKS.run(Tried(report, runs))}


@pytest.mark.parametrize(
    ("report", "failing"),
    [
        (Good(), set()),
        # that of `overhead` has no cell either
        (but(skip=name_the_task), {"an empty run", "a full run"}),
        (shows(lambda run: run.metrics["address"].unique()[1]), {"a run of one cell"}),
        (but(build=change_the_run), {"a full run"}),
        (shows(lambda _: next(_calls)), {"a full run"}),
        (shows(lambda _: 1, caption=""), {"a run of one cell", "a full run"}),
    ],
)
def test_a_defect_is_found(report, failing, runs):
    found = states(report, runs)
    assert {check for check, state in found.items() if state == "failed"} == failing
    assert "unchecked" not in found.values()


def test_a_report_that_skips_all_could_not_be_checked(runs):
    assert states(SkipsAll(), runs)["a full run"] == "unchecked"
    found = REPORT_CHECKS.run(Tried(SkipsAll(), runs))
    assert "--run" in found[-1].detail


@pytest.mark.parametrize(
    "name", ["arithmetic_table", "clock_table", "mmlu_table", "overhead_table", "samsum_table"]
)
def test_tables_here_pass(name, runs):
    assert set(states(load("reports", name), runs).values()) == {"passed"}


def test_the_full_run_has_every_state(runs):
    run = read_run(runs.full["full"])
    assert set(run.cells["status"]) == {"done", "failed"}
    empty = read_run(runs.empty["without results"])
    assert set(empty.cells["status"]) == {"pending", "failed", "skipped"}
    assert not any(frame.empty for frame in (run.comparisons, run.probes, run.train_log))
    assert set(run.regression["suite"]) == {"mmlu", "piqa"}


def test_a_run_of_ones_own_is_tried_as_well(tmp_path, runs):
    from smmd_bench.conformance.generated_run import GeneratedCell, write_run

    own = write_run(tmp_path / "own", [GeneratedCell("a", "gsm8k", "ce", 3)])
    both = GeneratedRuns(tmp_path / "generated", own)
    both.__dict__["full"] = {str(own): own}
    (full,) = [f for f in REPORT_CHECKS.run(Tried(Good(), both)) if f.check == "a full run"]
    assert str(own) in full.detail
