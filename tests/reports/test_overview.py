"""The forest of every loss against cross-entropy."""

import numpy as np
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
    verdicts = planted.verdict
    exact = verdicts[verdicts["metric"] == "exact_match"].set_index("loss")
    shares, errors = drawn.figure.axes

    # Right is better: of an error the smaller value.
    assert not shares.xaxis_inverted()
    assert errors.xaxis_inverted()
    assert errors.get_xlabel() == "Δ MAE to CE, axis reversed\n← worse · better →"

    texts = [text.get_text() for text in shares.texts]
    colours = [text.get_color() for text in shares.texts]
    assert texts[::2] == ["cannot tell", "better"]
    assert colours[::2] == ["black", COLOURS["better"]]

    # Below the word stand the numbers of the table.
    smmd = exact.loc["smmd"]
    ends = f"[{smmd['low']:+.1f}, {smmd['high']:+.1f}]"
    expected = f"{smmd['difference']:+.1f} {ends}, p {smmd['p_holm']:.3f}"
    assert texts[3] == expected.replace("-", "−")

    interval = shares.lines[-2].get_xdata()
    bounds = exact.loc["smmd", ["low", "high"]]
    assert [*interval] == pytest.approx([*bounds])
    widths = [bar.get_width() / 2 for bar in shares.patches]
    assert widths == pytest.approx([*exact["smallest"]])

    texts = drawn.data["verdict"].str.partition(" (below")
    assert [*texts[0]] == [*verdicts["verdict"]]


def test_the_noise_floor_is_neither_green_nor_red(tmp_path):
    better = {0: HALF, 1: ANSWERS}
    run = planted_run(tmp_path, ANSWERS, {"ce": better, "smmd": better}, seeds=(0, 1))
    axis = Overview().build(run).figure.axes[0]
    colours = {text.get_text(): text.get_color() for text in axis.texts}
    assert colours["seeds differ"] == "black"


def test_a_band_that_is_missing_says_why(tmp_path):
    """Two seeds that differ much, whose spread is hardly known."""
    run = planted_run(
        tmp_path, ANSWERS, {"ce": HALF, "smmd": {0: HALF, 1: ANSWERS}}, seeds=(0, 1)
    )
    (row,) = run.verdict.query("loss == 'smmd' and metric == 'exact_match'").to_dict(
        "records"
    )
    assert np.isnan(row["smallest"])
    texts = [text.get_text() for text in Overview().build(run).figure.axes[0].texts]
    assert texts.count("no band: more seeds") == 1
