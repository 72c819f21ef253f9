"""What holds of all reports: when they are skipped, and the same bytes."""

import subprocess
import sys

import pytest

from smmd_bench.plugin_system import registry
from smmd_bench.publishing.style import figure_style
from smmd_bench.publishing.write_reports import make_report
from smmd_bench.results.frames import read_run
from tests.changed_runs import with_manifest, without
from tests.runs import quick_run
from tests.tuned_runs import tuned_run

STATES = {
    "as it is": lambda runs, _: runs("default"),
    "without results": lambda runs, folder: without(runs("default"), folder),
    "tuned": lambda _, folder: tuned_run(folder),
    "of CE alone": lambda _, folder: quick_run(folder, losses=("ce",)),
    "of summaries": lambda _, folder: quick_run(
        folder, tasks=("samsum",), losses=("ce", "smmd")
    ),
    "without cells": lambda runs, folder: with_manifest(
        runs("default"), folder, cells=[]
    ),
}
BUILT = {
    "as it is": 10, "without results": 2, "tuned": 11, "of CE alone": 5, "of summaries": 6,
    "without cells": 0,
}  # fmt: skip
"""How many reports each of them has."""
FIGURES = (
    "dataset_samples", "digit_probe", "dose_response", "error_histogram", "loss_shapes",
    "sigma_sensitivity", "training_curves",
)  # fmt: skip


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A run that most figures are of, and one that changes sigma and both lambdas."""
    values = ("smmd[sigma={}]", "smmd[lambda={}]", "ntl[lambda={}]")
    swept = (
        "ce",
        "ntl",
        "smmd",
        *(value.format(at) for value in values for at in (1, 8)),
    )
    losses = (("ce", "ntl", "smmd"), swept)
    return [
        quick_run(tmp_path_factory.mktemp("small"), losses=those) for those in losses
    ]


def build(name, run):
    with figure_style():
        return registry.load("reports", name).build(run)


@pytest.mark.parametrize("state", STATES)
def test_every_report_is_built_or_skipped_with_a_reason(state, runs, tmp_path):
    run = STATES[state](runs, tmp_path)
    artefacts = []
    for name in registry.names("reports"):
        if registry.load("reports", name).skip(run) is None:
            artefacts.append(build(name, run))

    assert len(artefacts) == BUILT[state]
    for artefact in artefacts:
        assert artefact.caption.endswith(".")
        assert artefact.table is not None or artefact.figure is not None


@pytest.mark.parametrize("name", FIGURES)
def test_the_same_run_gives_the_same_bytes(name, runs, small):
    """As `validate` has it for tables, captions and data; and here for the picture."""
    report = registry.load("reports", name)
    run = next(run for run in (*small, runs("samples")) if report.skip(run) is None)
    contents = []
    for _ in range(2):
        section = make_report(read_run(run.path), report, ("csv", "pdf"))
        assert section.files, section.error
        contents.append({file.name: file.read_bytes() for file in section.files})

    first, second = contents
    assert first == second


def test_no_report_needs_torch():
    code = (
        "import sys; from smmd_bench.plugin_system import registry\n"
        "for name in registry.names('reports'):\n"
        "    registry.load('reports', name)\n"
        "    assert 'torch' not in sys.modules, name"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
