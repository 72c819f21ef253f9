"""Drawing a synthetic chart: `draw`. Bars, stacked bars and lines on axes, and pies.

Margins follow from the lengths of the texts: to measure them would cost more than to draw.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from matplotlib import rc_context, rcParamsDefault

from ._charts_canvas import SIZE, SMALL, Canvas, Pair, Style, ink_on
from ._charts_data import CHARACTER, Chart, spell

# A marker a series, so that lines can be told apart without colour.
_MARKERS = "os^D"
_TITLE = 30
_LEGEND = 20
_LINE = 16
"""Heights of the title, of a legend above or below, and of a line of small print, in pixels."""
_SETTINGS = (
    "agg.", "figure.", "font.", "lines.", "markers.", "mathtext.", "patch.", "path.", "text.",
)  # fmt: skip
"""What of matplotlib's settings can change a picture: its defaults hold, whatever the user has."""


def draw(chart: Chart, style_seed: int, path: Path) -> None:
    """Draw a chart as a PNG file of 448 x 336 pixels, a plain one of 308 x 224."""
    settings = {
        k: rcParamsDefault[k] for k in rcParamsDefault if k.startswith(_SETTINGS)
    }
    with rc_context(settings):
        canvas = Canvas(Style(style_seed), SMALL if chart.plain else SIZE)
        _title(canvas, f"{chart.quantity} by {chart.dimension}")
        if chart.kind == "pie":
            _pie(canvas, chart)
        else:
            _chart_with_axes(canvas, chart)
        canvas.save(path)


def _title(canvas: Canvas, text: str) -> None:
    style = canvas.style
    x, ha = (12, "left") if style.left_title else (canvas.width / 2, "center")
    at = (x, canvas.height - 17)
    canvas.text(at, text, ha=ha, va="baseline", larger=2, weight=style.weight)


@dataclass(frozen=True, slots=True)
class _Area:
    """Where values and categories lie in the picture; `sideways` bars go to the right."""

    left: float
    bottom: float
    width: float
    height: float
    low: float
    high: float
    categories: int
    sideways: bool

    def value(self, tenths: float) -> float:
        share = (tenths - self.low) / (self.high - self.low)
        if self.sideways:
            return self.left + share * self.width
        return self.bottom + share * self.height

    def category(self, place: float) -> float:
        """The middle of category `place`; from the top where bars go to the right."""
        if self.sideways:
            down = (place + 0.5) * (self.height / self.categories)
            return self.bottom + self.height - down
        return self.left + (place + 0.5) * (self.width / self.categories)

    def point(self, place: float, tenths: float) -> tuple[float, float]:
        across, along = self.category(place), self.value(tenths)
        return (along, across) if self.sideways else (across, along)


def _chart_with_axes(canvas: Canvas, chart: Chart) -> None:
    style = canvas.style
    sideways = chart.kind == "horizontal bar"
    ticks = range(chart.floor, chart.top + 1, chart.step)
    if chart.printed and not style.framed:
        # Printed values say what the labels of an axis would.
        ticks = range(0)

    # Margins that the title, the legend, and the names of axes, categories and ticks take.
    left_margin, bottom, right, above = 14.0, 8.0, 16.0, float(_TITLE)
    if chart.series[0]:
        legend_right, legend_above, legend_below = _legend(canvas, chart.series)
        right += legend_right
        above += legend_above
        bottom += legend_below

    axis_name = _LINE if style.named_axes else 0
    names_width = max(map(len, chart.categories)) * CHARACTER
    ticks_width = 0.0
    if ticks:
        longest_tick = max(len(spell(tick)) for tick in ticks)
        ticks_width = longest_tick * CHARACTER + 4
    width = 0.95 * (canvas.width - left_margin - right - ticks_width)

    # Names that would run into one another are turned by 45 degrees.
    narrow = names_width > width / len(chart.categories)
    if sideways:
        left_margin += names_width + axis_name
        bottom += _LINE + axis_name if ticks else 0
    else:
        left_margin += ticks_width + (axis_name if ticks else 0)
        # Turned by 45 degrees, a name is as high as 0.71 of its width.
        bottom += (names_width * 0.75 + 6 if narrow else _LINE) + axis_name

    # Printed values stand above the bars; those of a stack stand in them.
    room = 0.1 if chart.printed and chart.kind != "stacked" else 0.04
    area = _Area(
        left_margin,
        bottom,
        canvas.width - left_margin - right,
        canvas.height - bottom - above,
        chart.floor,
        chart.top + room * (chart.top - chart.floor),
        len(chart.categories),
        sideways,
    )
    canvas.rectangle(
        (left_margin, bottom), (area.width, area.height), style.inside, behind=True
    )
    if chart.kind == "line":
        _lines(canvas, chart, area)
    else:
        _bars(canvas, chart, area)
    _grid(canvas, chart, area, ticks)
    _axes(canvas, chart, area, ticks, narrow=narrow)


def _grid(canvas: Canvas, chart: Chart, area: _Area, ticks: range) -> None:
    """Over the bars where values are read off it, so that their ends can be told."""
    style = canvas.style
    above = not chart.printed and chart.kind != "line"
    finer = range(0)
    if chart.halves:
        first_half = chart.floor + chart.step // 2
        finer = range(first_half, chart.top, chart.step)

    # A category takes half a place to each side, so the lines do as well.
    last = area.categories - 0.5
    grids = ((ticks, style.grid, 0.4), (finer, "-", 0.2))
    for lines, dashes, alpha in grids:
        for tick in lines:
            start = area.point(-0.5, tick)
            end = area.point(last, tick)
            canvas.line(
                [start, end], style.ink, lw=0.8, ls=dashes, alpha=alpha, above=above
            )


def _axes(
    canvas: Canvas, chart: Chart, area: _Area, ticks: range, *, narrow: bool
) -> None:
    _frame(canvas, area)
    names = [
        (area.category(place), name) for place, name in enumerate(chart.categories)
    ]
    labels = [(area.value(tick), spell(tick)) for tick in ticks]
    beneath, beside = (labels, names) if area.sideways else (names, labels)
    for y, text in beside:
        canvas.text((area.left - 5, y), text, ha="right")
    for x, text in beneath:
        if narrow and not area.sideways:
            canvas.text(
                (x + 3, area.bottom - 6), text, ha="right", va="top", rotation=45
            )
        else:
            canvas.text((x, area.bottom - 5), text, va="top")
    if canvas.style.named_axes:
        _axis_names(canvas, chart, area, ticked=bool(ticks))


def _frame(canvas: Canvas, area: _Area) -> None:
    """All around, or only the line from which the bars start."""
    right = area.left + area.width
    top = area.bottom + area.height
    corners = [
        (area.left, top),
        (area.left, area.bottom),
        (right, area.bottom),
        (right, top),
    ]
    line = corners[1:3]
    if area.sideways:
        line = corners[:2]
    if canvas.style.framed:
        line = [*corners, corners[0]]
    canvas.line(line, canvas.style.ink, lw=1, above=True)


def _axis_names(canvas: Canvas, chart: Chart, area: _Area, *, ticked: bool) -> None:
    beneath, beside = chart.dimension.capitalize(), chart.quantity if ticked else ""
    if area.sideways:
        beneath, beside = beside, beneath
    legend_below = chart.series[0] and canvas.style.legend == "below"
    lowest = 6 + (_LEGEND if legend_below else 0)
    canvas.text((area.left + area.width / 2, lowest), beneath, va="bottom")
    canvas.text((11, area.bottom + area.height / 2), beside, va="center", rotation=90)


def _bars(canvas: Canvas, chart: Chart, area: _Area) -> None:
    style = canvas.style
    stacked = chart.kind == "stacked"
    side_by_side = 1 if stacked else len(chart.series)
    width = style.bar_width / side_by_side

    # In tenths, where the next part of a stack begins.
    feet = [0] * area.categories
    for row, (values, colour) in enumerate(
        zip(chart.values, style.palette, strict=False)
    ):
        shift = 0.0 if stacked else (row - (side_by_side - 1) / 2) * width
        for column, value in enumerate(values):
            foot = feet[column]
            place = column + shift
            x0, y0 = area.point(place - width / 2, foot)
            x1, y1 = area.point(place + width / 2, foot + value)
            corner = (min(x0, x1), min(y0, y1))
            size = (abs(x1 - x0), abs(y1 - y0))
            canvas.rectangle(
                corner, size, colour, edge=style.ink if style.edged else ""
            )
            if stacked:
                feet[column] += value
            if not chart.printed:
                continue

            text, middle = spell(value), area.category(place)
            if stacked:
                inside = area.point(place, foot + value / 2)
                canvas.text(inside, text, larger=-0.5, color=ink_on(colour))
            elif area.sideways:
                canvas.text((x1 + 4, middle), text, ha="left", larger=-0.5)
            else:
                canvas.text((middle, y1 + 3), text, va="baseline", larger=-0.5)


def _lines(canvas: Canvas, chart: Chart, area: _Area) -> None:
    style = canvas.style
    for row, values in enumerate(chart.values):
        points = [area.point(column, value) for column, value in enumerate(values)]
        canvas.line(
            points,
            style.palette[row],
            lw=1.6,
            # One line stays solid, so that two of them differ.
            ls="--" if style.dashed and row else "-",
            marker=_MARKERS[row],
            above=True,
        )
        if not chart.printed:
            continue
        for (x, y), value in zip(points, values, strict=True):
            text = spell(value)
            canvas.text(
                (x, y + 7), text, va="baseline", larger=-0.5, behind=style.inside
            )


def _pie(canvas: Canvas, chart: Chart) -> None:
    style = canvas.style
    (values,) = chart.values
    key_width = 0.0
    if not style.labels_at_slices:
        key_width = max(map(len, chart.categories)) * CHARACTER + 34
        _key(canvas, chart.categories, canvas.width - key_width, canvas.height / 2 - 10)

    # Names around the pie take room that a larger one would have.
    radius = 108 if style.labels_at_slices else 130
    centre = ((canvas.width - key_width) / 2, (canvas.height - _TITLE) / 2)

    angle = float(style.turned)
    for name, value, colour in zip(
        chart.categories, values, style.palette, strict=False
    ):
        # Clockwise, as in most charts.
        end = angle - 360 * value / sum(values)
        canvas.slice(centre, radius, (end, angle), colour)
        middle = math.radians((angle + end) / 2)
        angle = end

        text = spell(value) + ("%" if chart.percent else "")
        # Near the rim, where a slice is wide enough for its text.
        inside = _spot(centre, middle, 0.74 * radius, 0.74 * radius)
        canvas.text(inside, text, color=ink_on(colour))
        if style.labels_at_slices:
            outside = _spot(centre, middle, radius + 9, radius + 12)
            canvas.text(outside, name, ha="left" if math.cos(middle) > 0 else "right")


def _spot(centre: Pair, angle: float, width: float, height: float) -> Pair:
    """The point of an ellipse in this direction, in radians."""
    return centre[0] + width * math.cos(angle), centre[1] + height * math.sin(angle)


def _legend(canvas: Canvas, names: tuple[str, ...]) -> tuple[float, float, float]:
    """Draw the legend of the series; returns what it takes right, above and below the area."""
    if canvas.style.legend == "right":
        width = max(map(len, names)) * CHARACTER + 30
        _key(canvas, names, canvas.width - width - 4, canvas.height / 2)
        return width, 0.0, 0.0

    is_above = canvas.style.legend == "above"
    y = canvas.height - _TITLE - 5 if is_above else 12
    widths = [len(name) * CHARACTER + 34 for name in names]

    # One row in the middle of the picture: no series here has names too wide for it.
    x = (canvas.width - sum(widths)) / 2
    for name, width, colour in zip(names, widths, canvas.style.palette, strict=False):
        _swatch(canvas, x, y, name, colour)
        x += width
    if is_above:
        return 0.0, _LEGEND, 0.0
    return 0.0, 0.0, _LEGEND


def _key(canvas: Canvas, names: tuple[str, ...], x: float, middle: float) -> None:
    y = middle + (len(names) - 1) * 9
    for name, colour in zip(names, canvas.style.palette, strict=False):
        _swatch(canvas, x, y, name, colour)
        y -= 18


def _swatch(canvas: Canvas, x: float, y: float, name: str, colour: str) -> None:
    canvas.rectangle((x, y - 5), (11, 10), colour)
    canvas.text((x + 17, y), name, ha="left")
