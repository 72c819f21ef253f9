"""What a synthetic chart shows and what is asked about it; `_charts_drawing` makes the picture.

Every answer can be told from the picture. Either each value is printed at its bar, point or slice,
or there are gridlines and every value (and every edge of a stacked bar) lies on one of them. Values
are kept in tenths, so that sums and differences are exact: integers, or numbers with one decimal.

A chart is drawn from (generator, data seed, split, index), and belongs to train, validation or test
by a hash of what it shows: the splits share no chart, whatever their sizes and seeds.
"""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, get_args

GENERATOR = 1
"""Version of charts, questions and pictures."""
QUESTIONS_A_CHART = 2
CHARACTER = 6.9
"""Widest mean width of a character of the small print, in pixels."""
PLOT_WIDTH = 330
"""Narrowest width of the bars' part of a picture without a legend beside it, in pixels."""

_PLAIN_WIDTH = 215
"""The same of a plain chart."""
_PLAIN_CATEGORIES = 5

ChartKind = Literal["bar", "horizontal bar", "line", "pie", "stacked"]
QuestionKind = Literal["value", "difference", "sum", "maximum", "minimum"]

_DIMENSIONS = {
    "year": tuple(str(year) for year in range(1995, 2025)),
    "month": (
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ),
    "weekday": ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"),
    "city": ("Lima", "Oslo", "Cairo", "Quito", "Delhi", "Paris", "Seoul", "Turin", "Perth"),
    "country": ("Peru", "Chad", "Italy", "Japan", "Kenya", "Spain", "Nepal", "Ghana", "Chile"),
    "fruit": (
        "Apple", "Pear", "Plum", "Mango", "Lemon", "Cherry", "Grape", "Melon", "Peach",
    ),
    "sport": ("Tennis", "Rugby", "Golf", "Rowing", "Judo", "Hockey", "Chess", "Skiing"),
    "subject": ("Maths", "Art", "Music", "Latin", "Law", "Physics", "History", "Biology"),
    "animal": ("Cat", "Dog", "Horse", "Goat", "Sheep", "Duck", "Rabbit", "Turtle"),
    "team": ("A", "B", "C", "D", "E", "F", "G", "H"),
}  # fmt: skip
# Neighbours follow one another, so that lines and runs of categories make sense.
_IN_ORDER = ("year", "month", "weekday")
_QUANTITIES = (
    "Tickets sold", "Visitors", "Members", "Complaints", "Exports", "Energy use", "Points won",
    "Hours of work", "Books lent", "New firms", "Prizes", "Repairs", "Scores", "Deliveries",
)  # fmt: skip
_SERIES = (
    ("Men", "Women"),
    ("Urban", "Rural"),
    ("Online", "In shops", "By phone"),
    ("Under 30", "30 to 60", "Over 60"),
    ("North", "South", "East"),
    ("Plan", "Actual"),
    ("Gas", "Wind", "Solar"),
    ("Old", "New"),
)
# In tenths. A step that stands twice is drawn twice as often.
_STEPS = (2, 5, 10, 10, 20, 20, 50, 50, 100, 100, 200, 250, 500, 1000, 2000, 5000)


@dataclass(frozen=True, slots=True)
class Chart:
    """The content of a picture; `values[series][category]`, `floor`, `step`, `top` are in tenths.

    The value axis goes from `floor` to `top` with labels every `step`; with `halves` there is a
    finer gridline between two. `printed`: the values stand in the picture; with `percent` (of a
    pie) followed by a percent sign. `plain`: the picture is smaller.
    """

    kind: ChartKind
    quantity: str
    dimension: str
    categories: tuple[str, ...]
    series: tuple[str, ...]
    values: tuple[tuple[int, ...], ...] = ()
    floor: int = 0
    step: int = 0
    top: int = 0
    halves: bool = False
    printed: bool = True
    percent: bool = False
    plain: bool = False


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a chart; `answer` is in tenths."""

    kind: QuestionKind
    text: str
    answer: int


def spell(tenths: int) -> str:
    """140 -> "14", 35 -> "3.5": how values are printed and answers written."""
    integer, decimal = divmod(abs(tenths), 10)
    sign = "-" if tenths < 0 else ""
    return f"{sign}{integer}.{decimal}" if decimal else f"{sign}{integer}"


def chart_at(
    split: str, seed: int, index: int, *, plain: bool = False
) -> tuple[Chart, tuple[Question, ...], int]:
    """Chart `index` of a split, its questions, and the seed of its style.

    plain: up to five bars or points of one series, whose values are printed.
    """
    # A generator of its own: chart 7 is the same whatever is drawn before it.
    rng = random.Random(f"chartqa {GENERATOR} {seed} {split} {index}")
    chart = _chart(rng)

    # Drawn until one is of this split, so that no index is left without a chart.
    while split_of(chart) != split or (plain and not _can_be_plain(chart)):
        chart = _chart(rng)
    chart = replace(chart, plain=plain)

    # Two kinds: a chart asked for its maximum twice would count one answer double.
    kinds = rng.sample(get_args(QuestionKind), QUESTIONS_A_CHART)
    return (
        chart,
        tuple(_question(kind, chart, rng) for kind in kinds),
        rng.getrandbits(32),
    )


def split_of(chart: Chart) -> str:
    """The split that a chart belongs to: by a hash of what it shows, 8 : 1 : 1."""
    # Style and quantity do not count: the same values in blue would leak the answer.
    content = repr((chart.kind, chart.categories, chart.series, chart.values))
    digest = hashlib.blake2b(content.encode(), digest_size=8).digest()
    tenth = int.from_bytes(digest, "big") % 10
    return {0: "validation", 1: "test"}.get(tenth, "train")


def _can_be_plain(chart: Chart) -> bool:
    count = len(chart.categories)
    if not chart.printed or chart.kind == "pie" or len(chart.series) > 1:
        return False
    texts = [*chart.categories, *map(spell, chart.values[0])]
    longest = max(map(len, texts))
    fits = chart.kind == "horizontal bar" or longest * CHARACTER < _PLAIN_WIDTH / count
    return count <= _PLAIN_CATEGORIES and fits


def _chart(rng: random.Random) -> Chart:
    # Every draw comes in this order: the order is the data.
    kind = rng.choice(get_args(ChartKind))

    # A line through cities would say that something lies between them.
    dimension = rng.choice(_IN_ORDER if kind == "line" else tuple(_DIMENSIONS))
    series: tuple[str, ...] = ("",)
    if kind == "stacked" or (kind != "pie" and rng.random() < 0.4):
        series = rng.choice(_SERIES)

    # More would not fit in: a pie has six colours, bars of several series are narrow.
    names = _DIMENSIONS[dimension]
    most_bars = 8 if len(series) == 1 else 5
    most_categories = {"pie": 6, "line": 9}.get(kind, most_bars)
    count = rng.randint(3, min(most_categories, len(names)))
    if dimension in _IN_ORDER:
        start = rng.randint(0, len(names) - count)
        categories = names[start : start + count]
    else:
        categories = tuple(rng.sample(names, count))

    quantity = rng.choice(_QUANTITIES)
    chart = Chart(kind, quantity, dimension, categories, series)
    if kind == "pie":
        return _draw_slices(rng, chart)
    return _draw_values(rng, chart)


def _draw_slices(rng: random.Random, chart: Chart) -> Chart:
    """Slices of at least 6 in 100, so that their values fit in."""
    # What the least shares leave of the whole is cut at random.
    count = len(chart.categories)
    spare = 100 - 6 * count
    cuts = sorted(rng.sample(range(spare), count - 1))
    bounds = [0, *cuts, spare]

    # In tenths: a percentage is its share, any other value its share times a scale.
    percent = rng.random() < 0.5
    scale = 10 if percent else rng.choice((1, 5, 10, 20, 50))
    values = []
    for low, high in pairwise(bounds):
        share = 6 + high - low
        values.append(share * scale)
    return replace(chart, values=(tuple(values),), percent=percent)


def _draw_values(rng: random.Random, chart: Chart) -> Chart:
    # Every draw comes in this order: the order is the data.
    parts = len(chart.series) if chart.kind == "stacked" else 1
    step = rng.choice(_STEPS)
    ticks = rng.randint(4, 7)
    printed = rng.random() < 0.5 and _can_be_printed(chart, step, ticks)
    floor, halves = 0, False
    if printed:
        # Printed values need no gridline: one decimal for small steps, else whole.
        unit = 1 if step < 20 else 10
        # No bar so short that its value has no room, and no part of a stack either.
        lowest = -(-ticks * step // (5 if parts > 1 else 10) // unit)
        highest = ticks * step // unit
    else:
        if parts > 1:
            # A stack's edges lie on gridlines, of which more could not be told apart.
            ticks = rng.randint(2, 9 // parts)
        else:
            # An odd step has no half in tenths.
            halves = step % 2 == 0 and rng.random() < 0.4
        unit = step // 2 if halves else step
        if chart.kind == "line" and rng.random() < 0.4:
            # Only a line may start above zero: bars would lie about their ratios.
            floor = step * rng.randint(2, 20)
        lowest = floor // unit + 1
        highest = (floor + ticks * step) // unit

    values = _draw_rows(rng, chart, unit, range(lowest, highest + 1))
    if parts > 1:
        reached = max(map(sum, zip(*values, strict=True)))
        # A printed stack is as many times as high, and needs no more labels.
        step *= parts if printed else 1
    else:
        reached = max(map(max, values))

    # The axis ends at the first label that no value passes.
    steps = -(-(reached - floor) // step)
    return replace(
        chart,
        values=values,
        floor=floor,
        step=step,
        top=floor + steps * step,
        halves=halves,
        printed=printed,
    )


def _draw_rows(
    rng: random.Random, chart: Chart, unit: int, multiples: range
) -> tuple[tuple[int, ...], ...]:
    """A row of values for each series, multiples of the unit."""
    low, high = multiples[0], multiples[-1]
    rows = [
        tuple(unit * rng.randint(low, high) for _ in chart.categories)
        for _ in chart.series
    ]
    # drawn again so that no two lines meet: one would hide the other
    if chart.kind == "line":
        columns = [rng.sample(multiples, len(rows)) for _ in chart.categories]
        rows = [tuple(unit * n for n in row) for row in zip(*columns, strict=True)]
    return tuple(rows)


def _can_be_printed(chart: Chart, step: int, ticks: int) -> bool:
    """Whether the printed values do not run into one another."""
    categories, series = len(chart.categories), len(chart.series)
    bars = categories if chart.kind == "stacked" else categories * series

    # Beside bars that go to the right, a text needs its height alone.
    if chart.kind == "horizontal bar":
        return series == 1 or bars <= 12

    # Values below a step of 2.0 are printed with a decimal.
    longest = "7.0" if step < 20 else spell(step * ticks)
    text_width = len(longest) * CHARACTER

    # The points of two lines may be close, and so would be their texts.
    if chart.kind == "line":
        return series == 1 and text_width < PLOT_WIDTH / categories
    bar_width = PLOT_WIDTH / bars
    return text_width < 0.7 * bar_width


def _question(kind: QuestionKind, chart: Chart, rng: random.Random) -> Question:
    # Every draw comes in this order: the order is the data.
    row = rng.randrange(len(chart.series))
    column, other_column = rng.sample(range(len(chart.categories)), 2)
    name, values = chart.series[row], chart.values[row]
    of_series = f" of {name}" if name else ""
    category = chart.categories[column]
    answer = values[column]
    if kind == "value":
        texts = (
            f"What is the value{of_series} for {category}?",
            f"Which value{of_series} does the chart show for {category}?",
        )
    elif kind in ("maximum", "minimum"):
        if kind == "maximum":
            answer, word = max(values), "highest"
        else:
            answer, word = min(values), "lowest"
        texts = (
            f"What is the {word} value{of_series}?",
            f"What is the {kind}{of_series} in the chart?",
        )
    else:
        # within one category instead of within one series
        if name and rng.random() < 0.5:
            other_row = rng.choice([at for at in range(len(chart.series)) if at != row])
            pair = f"the values of {name} and {chart.series[other_row]} for {category}"
            other = chart.values[other_row][column]
        else:
            pair = f"the values{of_series} for {category} and {chart.categories[other_column]}"
            other = values[other_column]
        if kind == "sum":
            answer += other
            texts = (f"What is the sum of {pair}?", f"What do {pair} add up to?")
        else:
            answer = abs(answer - other)
            texts = (
                f"What is the difference between {pair}?",
                f"How far apart are {pair}?",
            )
    return Question(kind, rng.choice(texts), answer)
