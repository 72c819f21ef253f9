"""What holds of all reports: when they are skipped, and the same bytes."""

import subprocess
import sys
from contextlib import suppress
from itertools import combinations

import pytest
from smmd_bench.reports import digit_distribution, error_histogram

from smmd_bench.contracts import ReportSkippedError
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
LONG = "a-model-of-a-few-billion-parameters-instruct"
RATES_AND_LAMBDAS = (
    "lambda=1,weight_decay=0.1,learning_rate=1e-4",
    "lambda=3,weight_decay=0.01,learning_rate=3e-4",
    "lambda=9,weight_decay=0.001,learning_rate=1e-3",
)
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


@pytest.fixture(scope="module")
def crowded(tmp_path_factory):
    """Names of model and task that are long, and three settings of each loss."""
    grids = {
        "ce": ("learning_rate=1e-4", "learning_rate=3e-4", "learning_rate=1e-3"),
        "smmd": (*RATES_AND_LAMBDAS,),
    }
    names = {"models": (f"org/{LONG}",), "tasks": ("arithmetic[operations=1..2]",)}
    return tuned_run(tmp_path_factory.mktemp("crowded"), grids, n=40, **names)


def build(name, run):
    with figure_style():
        return registry.load("reports", name).build(run)


def build_first(name, runs):
    """The first of the runs that the report does not skip, and what it makes of it."""
    for run in runs:
        with suppress(ReportSkippedError):
            return run, build(name, run)
    return None


@pytest.mark.parametrize("state", STATES)
def test_every_report_is_built_or_skipped_with_a_reason(state, runs, tmp_path):
    run = STATES[state](runs, tmp_path)
    artefacts = []
    for name in registry.names("reports"):
        with suppress(ReportSkippedError):
            artefacts.append(build(name, run))

    assert len(artefacts) == BUILT[state]
    for artefact in artefacts:
        assert artefact.caption.endswith(".")
        assert artefact.table is not None or artefact.figure is not None


@pytest.mark.parametrize("name", FIGURES)
def test_the_same_run_gives_the_same_bytes(name, runs, small):
    """As `validate` has it for tables, captions and data; and here for the picture."""
    report = registry.load("reports", name)
    run, _ = build_first(name, (*small, runs("samples")))
    contents = []
    for _ in range(2):
        section = make_report(read_run(run.path), report, ("csv", "pdf"))
        assert section.files, section.error
        contents.append({file.name: file.read_bytes() for file in section.files})

    first, second = contents
    assert first == second


@pytest.mark.parametrize(
    "name", [*FIGURES, "overview", "signed_errors", "tuning_table"]
)
def test_titles_and_labels_are_in_the_figure_and_titles_do_not_touch(
    name, runs, small, crowded, monkeypatch
):
    for module in (digit_distribution, error_histogram):
        monkeypatch.setattr(module, "FEWEST", 1)
    figure = build_first(name, (crowded, *small, runs("samples")))[1].figure
    with figure_style():
        figure.draw_without_rendering()

    titles, labels = list_texts(figure)
    for text in (*titles, *labels):
        box = text.get_window_extent()
        # A pixel is rounding.
        assert -1 <= box.x0 <= box.x1 <= figure.bbox.x1 + 1, text
        assert -1 <= box.y0 <= box.y1 <= figure.bbox.y1 + 1, text
    for one, other in combinations(titles, 2):
        boxes = one.get_window_extent(), other.get_window_extent()
        assert not boxes[0].overlaps(boxes[1]), (one, other)


def list_texts(figure):
    """The titles that a figure has, and the labels of its axes."""
    titles = [part._suptitle for part in figure.subfigs if part._suptitle]
    labels = []
    for axis in figure.axes:
        titles += [axis.title, axis._left_title, axis._right_title, *axis.texts]
        labels += [axis.xaxis.label, axis.yaxis.label]
        labels += axis.get_yticklabels(minor=True)
    return [
        [text for text in texts if text.get_text().strip()]
        for texts in (titles, labels)
    ]


def test_no_report_needs_torch():
    code = (
        "import sys; from smmd_bench.plugin_system import registry\n"
        "for name in registry.names('reports'):\n"
        "    registry.load('reports', name)\n"
        "    assert 'torch' not in sys.modules, name"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
