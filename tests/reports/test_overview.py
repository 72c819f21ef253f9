"""The forest of every loss against cross-entropy."""

import pytest
from matplotlib.colors import to_hex
from smmd_bench.reports._results import verdicts
from smmd_bench.reports.verdict import BAND, COLOURS, ROWS, Overview

from smmd_bench.publishing.style import figure_style
from tests.changed_runs import made_elsewhere
from tests.runs import planted_run, quick_run

ANSWERS = [str(at) for at in range(20)]


HALF = [*ANSWERS[:10], *["77"] * 10]


NEAR = [*ANSWERS[:10], *(str(at + 1) for at in range(10, 20))]


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """CE answers half of the examples, `smmd` all of them, and `ntl` the same half less far off."""
    answers = {"ce": HALF, "ntl": NEAR, "smmd": ANSWERS}
    return planted_run(tmp_path_factory.mktemp("planted"), ANSWERS, answers)


@pytest.fixture(scope="module")
def drawn(planted):
    with figure_style():
        return Overview().build(planted)


def bands(axis):
    """Half the width of each grey band, by row."""
    return {
        round(bar.get_y() + bar.get_height() / 2): bar.get_width() / 2
        for bar in axis.patches
        if to_hex(bar.get_facecolor()) == BAND.lower()
    }


def test_accuracy_is_on_the_left_and_the_error_on_the_right_with_the_value_of_ce(drawn):
    left, right = drawn.figure.axes
    assert (left.get_title("left"), left.get_xlabel()) == (
        "Acc (%), CE 50.0", "Δ Acc (%) to CE: right is better →",
    )  # fmt: skip
    assert right.get_title("left").startswith("MAE, CE ")
    assert right.xaxis_inverted()
    assert not left.xaxis_inverted()
    assert [label.get_text() for label in left.get_yticklabels()] == ["NTL", "SMMD"]
    assert drawn.figure.subfigs[0].get_suptitle() == "builtin/tiny, gsm8k: 20 test examples"


def test_a_row_has_the_difference_the_verdict_and_p_of_the_table(planted, drawn):
    left = drawn.figure.axes[0]
    known = verdicts(planted)
    smmd = known[(known["loss"] == "smmd") & (known["metric"] == "exact_match")].iloc[0]
    said = f"+50.0 [+{smmd['low']:.1f}, +{smmd['high']:.1f}], p {smmd['p_holm']:.3f}"
    assert [text.get_text() for text in left.texts][2:] == ["better", said]
    assert [text.get_color() for text in left.texts[::2]] == ["black", COLOURS["better"]]
    assert drawn.data["verdict"].tolist() == known["verdict"].tolist()


def test_a_band_ends_at_the_smallest_difference_that_the_test_finds(planted, drawn):
    known = verdicts(planted)
    accuracy = known[known["metric"] == "exact_match"].set_index("loss")["smallest"]
    assert bands(drawn.figure.axes[0]) == pytest.approx({0: accuracy["ntl"], 1: accuracy["smmd"]})


def test_nothing_sticks_out_of_a_figure_of_many_losses(tmp_path):
    losses = ["ce", *(f"smmd[sigma=1+2+{at},lambda=25]" for at in range(3, 23))]
    run = quick_run(
        tmp_path, tasks=("arithmetic", "gsm8k", "svamp"), losses=losses, n=9, resamples=5
    )
    with figure_style():
        artefact = Overview().build(run)
        artefact.figure.draw_without_rendering()
    figure = artefact.figure
    boxes = [
        t.get_window_extent()
        for axis in figure.axes
        for t in (*axis.texts, *axis.get_yticklabels())
    ]
    assert all(box.x0 >= 0 and box.x1 <= figure.bbox.x1 for box in boxes)
    assert len(figure.subfigs) == ROWS // 20


def test_the_noise_floor_is_neither_green_nor_red(tmp_path):
    better = {0: HALF, 1: ANSWERS}
    run = planted_run(tmp_path, ANSWERS, {"ce": better, "smmd": better}, seeds=(0, 1))
    left = Overview().build(run).figure.axes[0]
    floor = next(text for text in left.texts if text.get_text() == "seeds differ")
    assert floor.get_color() == "black"


def test_completions_made_elsewhere_have_no_seeds_and_the_first_label_to_be_compared_with(tmp_path):
    run = planted_run(tmp_path, ANSWERS, {"ce": HALF, "smmd": ANSWERS})
    run = made_elsewhere(run, tmp_path, {"ce": "old", "smmd": "new"})
    figure = Overview().build(run).figure
    assert figure.axes[0].get_xlabel() == "Δ Acc (%) to old: right is better →"
