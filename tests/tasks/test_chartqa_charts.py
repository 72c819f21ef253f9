"""Synthetic charts: answers that the picture determines, disjoint splits, honest bars."""

import re

import numpy as np
import pytest
from matplotlib import rc_context
from PIL import Image
from smmd_bench.tasks._charts_canvas import Style
from smmd_bench.tasks._charts_data import chart_at, split_of
from smmd_bench.tasks._charts_drawing import draw

CHARTS = [chart_at("train", 0, index) for index in range(600)]


def answer_by_reading(question, chart):
    """The answer by the words of the question and the chart's table alone."""
    text = re.sub(r"^(What|Which|How|Where) ", "", question.text)
    named = [s for s in chart.series if s and re.search(rf"\b{s}\b", text)]
    asked = [c for c in chart.categories if re.search(rf"\b{c}\b(?! and .* for )", text)]
    table = {
        (series, category): value
        for series, row in zip(chart.series, chart.values, strict=True)
        for category, value in zip(chart.categories, row, strict=True)
    }
    cells = [table[s, c] for s in named or [""] for c in asked or chart.categories]
    if re.search("highest|maximum", text):
        return max(cells)
    if re.search("lowest|minimum", text):
        return min(cells)
    if re.search("sum|add up", text):
        assert len(cells) == 2
        return sum(cells)
    if re.search("difference|far apart", text):
        a, b = cells
        return abs(a - b)
    (cell,) = cells
    return cell


def test_the_answers_are_those_of_the_table():
    for chart, questions, _ in CHARTS:
        for question in questions:
            assert question.answer == answer_by_reading(question, chart), (question, chart)


def test_every_value_is_printed_or_on_a_gridline():
    for chart, _, _ in CHARTS:
        if chart.printed:
            continue
        line = chart.step // 2 if chart.halves else chart.step
        for column in zip(*chart.values, strict=True):
            edges = np.cumsum(column) if chart.kind == "stacked" else np.array(column)
            assert ((edges - chart.floor) % line == 0).all(), chart
            assert (edges > chart.floor).all(), chart
            assert edges.max() <= chart.top, chart
        assert (chart.top - chart.floor) // chart.step <= 9


def test_splits_share_no_chart_whatever_the_seed():
    shown = {
        split: {
            (chart.kind, chart.categories, chart.series, chart.values)
            for seed in range(3)
            for chart, _, _ in (chart_at(split, seed, index) for index in range(100))
        }
        for split in ("train", "validation", "test")
    }
    assert len(shown["train"] | shown["validation"] | shown["test"]) == 900
    for split in shown:
        assert {split_of(chart_at(split, 0, index)[0]) for index in range(50)} == {split}


def test_a_picture_follows_from_its_place_alone_and_not_from_a_users_settings(tmp_path):
    own = {"font.size": 20, "lines.linewidth": 9, "patch.edgecolor": "red", "savefig.dpi": 33,
           "figure.dpi": 50, "figure.constrained_layout.use": True, "text.color": "red",
           "axes.unicode_minus": False, "path.sketch": (3, 100, 2)}  # fmt: skip
    assert chart_at("test", 4, 9) == chart_at("test", 4, 9)
    for chart, _, style in CHARTS[:8]:
        for name, settings in {"one.png": {}, "two.png": {}, "own.png": own}.items():
            with rc_context(settings):
                draw(chart, style, tmp_path / name)
        assert len({file.read_bytes() for file in tmp_path.iterdir()}) == 1


@pytest.mark.parametrize("seen", range(4))
def test_bars_are_as_long_as_their_values(seen, tmp_path):
    """Measured in the picture: the bars' colour, column by column."""
    single = [
        (chart, style)
        for chart, _, style in CHARTS
        if chart.kind == "bar" and len(chart.series) == 1
    ]
    chart, style = single[seen]
    draw(chart, style, tmp_path / "chart.png")
    with Image.open(tmp_path / "chart.png") as picture:
        pixels = np.asarray(picture).astype(int)  # [336, 448, 3]
    colour = Style(style).palette[0]
    wanted = [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
    is_bar = (np.abs(pixels - wanted) < 4).all(axis=2)
    columns = np.flatnonzero(is_bar.sum(axis=0) > 3)
    bars = np.split(columns, np.flatnonzero(np.diff(columns) > 3) + 1)
    assert len(bars) == len(chart.categories)
    rows = [np.flatnonzero(is_bar[:, bar[len(bar) // 2]]) for bar in bars]
    foot = max(row.max() for row in rows)
    heights = np.array([foot - row.min() + 1 for row in rows])
    values = np.array(chart.values[0])
    np.testing.assert_allclose(heights, values * heights.max() / values.max(), atol=3)
