"""The forest of every loss against cross-entropy."""

import pytest
from smmd_bench.reports._forest import COLOURS
from smmd_bench.reports.verdict import Overview

from smmd_bench.publishing.style import figure_style
from tests.runs import planted_run

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


def test_a_row_has_the_difference_the_verdict_and_p_of_the_table(planted, drawn):
    left, right = drawn.figure.axes
    assert (left.xaxis_inverted(), right.xaxis_inverted()) == (False, True)  # right is better
    known = planted.verdict
    smmd = known[(known["loss"] == "smmd") & (known["metric"] == "exact_match")].iloc[0]
    assert [text.get_text() for text in left.texts] == ["cannot tell", "better"]
    assert [text.get_color() for text in left.texts] == ["black", COLOURS["better"]]
    interval = left.lines[-2].get_xdata()
    assert list(interval) == pytest.approx([smmd["low"], smmd["high"]])
    widths = [bar.get_width() / 2 for bar in left.patches]
    exact = known[known["metric"] == "exact_match"]
    assert widths == pytest.approx(exact["smallest"].tolist())
    words = drawn.data["verdict"].str.partition(" (below")[0]
    assert words.tolist() == known["verdict"].tolist()


def test_the_noise_floor_is_neither_green_nor_red(tmp_path):
    better = {0: HALF, 1: ANSWERS}
    run = planted_run(tmp_path, ANSWERS, {"ce": better, "smmd": better}, seeds=(0, 1))
    left = Overview().build(run).figure.axes[0]
    floor = next(text for text in left.texts if text.get_text() == "seeds differ")
    assert floor.get_color() == "black"
