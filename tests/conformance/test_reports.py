"""Each defect of a report is found; the reports here pass on the specimen and its parts."""

import itertools
from dataclasses import dataclass

import pandas as pd
import pytest

from smmd_bench.conformance.checks import run_checks
from smmd_bench.conformance.reports import REPORT_CHECKS
from smmd_bench.contracts import Artefact, ReportSkippedError
from smmd_bench.plugin_system.registry import load, names

NOT_IN_THE_SPECIMEN = {
    "decoding_table", "dose_response", "lambda_sensitivity", "ntl_lambda_scan",
    "regression_table", "sweep", "task_table", "tuning_table",
}  # fmt: skip
_calls = itertools.count()


@dataclass(frozen=True)
class Good:
    """How many metrics a run has."""

    name = "good"
    title = "Good"
    paper = "not in the paper"

    def build(self, run):
        if run.metrics.empty:
            raise ReportSkippedError("no metrics")
        return Artefact("A count.", pd.DataFrame({"n": [len(run.metrics)]}))


def but(**methods):
    """The good report, but for these methods."""
    return type("Changed", (Good,), methods)()


def shows(value, caption="A caption."):
    """The good report with a table of one value."""
    return but(
        build=lambda self, run: (
            Good.build(self, run)
            and Artefact(caption, pd.DataFrame({"x": [value(run)]}))
        )
    )


def name_the_task(self, run):
    return run.cells["task"].iloc[0] and Good.build(self, run)


def skip_all(self, run):
    raise ReportSkippedError("it is for another kind of run")


def change_the_run(self, run):
    run.metrics["value"] = 0.0
    return Good.build(self, run)


def states(report):
    return {
        finding.check: finding.state
        for finding in run_checks(REPORT_CHECKS, report, None)
    }


@pytest.mark.parametrize(
    ("report", "failing"),
    [
        (Good(), set()),
        # that of `overhead` has no cell either
        (but(build=name_the_task), {"a full run"}),
        (shows(lambda run: run.metrics["address"].unique()[1]), {"parts of a run"}),
        (but(build=change_the_run), {"a full run"}),
        (shows(lambda _: next(_calls)), {"a full run"}),
        (shows(lambda _: 1, caption=""), {"parts of a run", "a full run"}),
    ],
)
def test_a_defect_is_found(report, failing):
    outcomes = states(report)
    assert {check for check, state in outcomes.items() if state == "failed"} == failing
    assert "unchecked" not in outcomes.values()


def test_a_report_that_skips_all_could_not_be_checked():
    finding = run_checks(REPORT_CHECKS, but(build=skip_all), None)[-1]
    assert finding.state == "unchecked"
    assert "--run" in finding.detail


@pytest.mark.slow
@pytest.mark.parametrize("name", names("reports"))
def test_every_report_here_passes(name):
    outcomes = states(load("reports", name))
    assert "failed" not in outcomes.values()
    assert (outcomes["a full run"] == "unchecked") == (name in NOT_IN_THE_SPECIMEN)
