"""Figures of files of completions whose names are longer than a panel is wide."""

import pytest

from smmd_bench.plugin_system.registry import load
from smmd_bench.publishing.style import figure_style
from tests.changed_runs import made_elsewhere
from tests.runs import planted_run

ANSWERS = [str(100 + at) for at in range(400)]
WRONG = [*ANSWERS[:200], *(str(300 + at) for at in range(200))]
LOSSES = ("ce", *(f"smmd[sigma={at}]" for at in range(1, 6)))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Six files, the first of which the others are compared with."""
    folder = tmp_path_factory.mktemp("files")
    answers = {loss: WRONG if loss == "ce" else ANSWERS for loss in LOSSES}
    names = {loss: f"samples_gsm8k_2026-11-{at}T10-00-00.123" for at, loss in enumerate(LOSSES, 20)}
    return made_elsewhere(planted_run(folder, ANSWERS, answers), folder, names)


def titles(axis):
    """The title of a panel, wherever it stands."""
    found = (getattr(axis, name) for name in ("title", "_left_title", "_right_title"))
    return [title for title in found if title.get_text()]


@pytest.mark.parametrize("name", ["overview", "error_histogram", "signed_errors"])
def test_no_title_is_wider_than_its_panel(name, files):
    with figure_style():
        figure = load("reports", name).build(files).figure
        figure.draw_without_rendering()
    widths = [
        (title.get_window_extent().width, axis.bbox.width, title.get_text())
        for axis in figure.axes
        for title in titles(axis)
    ]
    assert widths
    assert [text for wide, room, text in widths if wide > room] == []


def test_labels_below_the_panels_of_the_overview_do_not_meet(files):
    with figure_style():
        figure = load("reports", "overview").build(files).figure
        figure.draw_without_rendering()
    left, right = (axis.xaxis.label.get_window_extent() for axis in figure.axes)
    assert left.x1 < right.x0
    assert right.x1 < figure.bbox.x1
