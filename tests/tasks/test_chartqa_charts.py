"""Synthetic charts: answers that the picture determines, disjoint splits, honest bars."""

import re
from itertools import product

import numpy as np
import pandas as pd
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
    table = pd.DataFrame(chart.values, index=chart.series, columns=chart.categories)
    series = [s for s in chart.series if s and re.search(rf"\b{s}\b", text)]
    categories = [
        c for c in chart.categories if re.search(rf"\b{c}\b(?! and .* for )", text)
    ]
    cells = (
        table.loc[series or [""], categories or table.columns]
        .to_numpy()
        .flatten()
        .tolist()
    )
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
            assert question.answer == answer_by_reading(question, chart), (
                question,
                chart,
            )


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
    contents = set()
    for split, seed in product(("train", "validation", "test"), range(3)):
        charts = [chart_at(split, seed, index)[0] for index in range(100)]
        assert {*map(split_of, charts)} == {split}
        contents |= {(c.kind, c.categories, c.series, c.values) for c in charts}
    assert len(contents) == 900


def test_a_picture_follows_from_its_place_alone_and_not_from_a_users_settings(tmp_path):
    users = {"font.size": 20, "lines.linewidth": 9, "patch.edgecolor": "red", "savefig.dpi": 33,
           "figure.dpi": 50, "figure.constrained_layout.use": True, "text.color": "red",
           "axes.unicode_minus": False, "path.sketch": (3, 100, 2)}  # fmt: skip
    assert chart_at("test", 4, 9) == chart_at("test", 4, 9)
    for chart, _, style in CHARTS[:8]:
        for name, settings in {
            "one.png": {},
            "two.png": {},
            "users.png": users,
        }.items():
            with rc_context(settings):
                draw(chart, style, tmp_path / name)
        assert len({file.read_bytes() for file in tmp_path.iterdir()}) == 1


@pytest.mark.parametrize("number", range(4))
def test_bars_are_as_long_as_their_values(number, tmp_path):
    """Measured in the picture: the bars' colour, column by column."""
    chart, _, style = [row for row in CHARTS if is_single(row[0])][number]
    draw(chart, style, tmp_path / "chart.png")
    heights = measure_bars(tmp_path / "chart.png", Style(style).palette[0])
    assert len(heights) == len(chart.categories)
    values = np.array(chart.values[0])
    expected = values * heights.max() / values.max()
    np.testing.assert_allclose(heights, expected, atol=3)


def is_single(chart):
    return chart.kind == "bar" and len(chart.series) == 1


def measure_bars(file, colour):
    """The heights of the bars of a colour, in pixels, from the left."""
    with Image.open(file) as picture:
        pixels = np.asarray(picture).astype(int)  # [336, 448, 3]
    difference = np.abs(pixels - [*bytes.fromhex(colour[1:])])
    is_bar = (difference < 4).all(axis=2)  # [336, 448]
    columns = np.flatnonzero(is_bar.sum(axis=0) > 3)
    gaps = np.flatnonzero(np.diff(columns) > 3)
    heights = []
    for bar in np.split(columns, gaps + 1):
        middle = bar[len(bar) // 2]
        rows = np.flatnonzero(is_bar[:, middle])  # with gaps where gridlines cross
        heights.append(np.ptp(rows) + 1)
    return np.array(heights)
