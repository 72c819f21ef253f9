"""What `builtin/tiny-vl` is pre-trained on: pictures, each with questions and their answers.

Picture `index` of a source under a key is always the same. Its questions are the task's own, and
some that the task does not ask: where each hand of a clock points, and all values of a chart in one
line. They make the picture's tokens say what is in it, which one number a picture teaches slowly.
Labels and notes, a few names with values, teach to read before there are bars: labels in pictures
so small that many are seen a second, notes in those of charts. Columns are small charts of two to
four bars with their values, and teach which value belongs to which name; plain charts are those of
the task's parameter. `values` are plain charts, of which only values are asked for: which of them
is wanted is left to fine-tuning.

Charts come from the task's train split; the faces of clocks are drawn from seeds of their own, so
that the 100 faces of the task stay unseen.
"""

from __future__ import annotations

import random
import string
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args
from unittest.mock import patch

import matplotlib
import numpy as np
from matplotlib.text import Text
from PIL import Image, ImageDraw, ImageFont
from smmd_bench.tasks import chartqa, clock_time
from smmd_bench.tasks._charts_canvas import Canvas, Style
from smmd_bench.tasks._charts_data import (
    _DIMENSIONS,
    Chart,
    QuestionKind,
    _question,
    chart_at,
    spell,
)
from smmd_bench.tasks._charts_drawing import draw
from smmd_bench.tasks._clock_drawing import FONTS, FaceStyle, draw_clock

CHARACTERS = string.digits + "." + string.ascii_letters
CLOCKS_A_FACE = 16
_ALL = "Which values does the chart show?"
SIZES = {
    "charts": (364, 252),
    "plain": (308, 224),
    "values": (308, 224),
    "notes": (364, 252),
    "clocks": (224, 224),
    "columns": (168, 112),
    "labels": (112, 112),
}
"""Width and height after the processor's resizing, to which a test holds them."""

Pairs = tuple[tuple[str, str], ...]
Letters = list[tuple[float, float, int]]
Draw = Callable[[], tuple[Image.Image, Letters]]


@dataclass(frozen=True, slots=True)
class Lesson:
    """A picture, RGB uint8 [H, W, 3], and pairs of a prompt and its target; the task's first.

    letters: [n, 3], where the middle of each character of its horizontal texts is, in pixels from
    the left and from the top, and its number in `CHARACTERS`.
    """

    picture: np.ndarray
    pairs: Pairs
    letters: np.ndarray


def picture_at(source: str, key: str, index: int) -> Lesson:
    """The lesson number `index` of a source; `key`: a seed, or what else the pictures are for."""
    draw_it, pairs = _MAKERS[source](key, index)
    drawn, letters = draw_it()
    scale = [new / old for new, old in zip(SIZES[source], drawn.size, strict=True)]
    made = drawn.resize(SIZES[source], Image.Resampling.BICUBIC)
    return Lesson(
        np.asarray(made), pairs, np.array(letters).reshape(-1, 3) * [*scale, 1]
    )


def pairs_at(source: str, key: str, index: int) -> Pairs:
    """The pairs of `picture_at`."""
    return _MAKERS[source](key, index)[1]


def _asked(question: str, answer: str) -> tuple[str, str]:
    return chartqa.PROMPT.format(question=question), f" {answer}"


def _clock(key: str, index: int) -> tuple[Draw, Pairs]:
    rng = random.Random(f"{key} clock {index}")
    hour, minute = rng.randint(1, 12), rng.randrange(0, 60, 5)
    style = _face_style(f"pretraining {key} {index // CLOCKS_A_FACE}")
    return lambda: (draw_clock(style, hour, minute), []), (
        (clock_time.PROMPT, f" {hour}:{minute:02}"),
        _asked("Which hour does the short hand show?", str(hour)),
        _asked("Which number does the long hand point to?", str(minute // 5 or 12)),
    )


# one object for its clocks, which share a drawing
_face_style = lru_cache(maxsize=8)(FaceStyle)


def _chart(
    key: str, index: int, *, plain: bool = False
) -> tuple[partial[tuple[Image.Image, Letters]], Pairs]:
    seed = random.Random(f"{key} charts").getrandbits(48)
    chart, _, style = chart_at("train", seed, index, plain=plain)
    rng = random.Random(f"{key} questions {index}")
    kinds: list[QuestionKind] = [*get_args(QuestionKind), "value"]
    questions = [_question(kind, chart, rng) for kind in kinds]
    pairs = [_asked(question.text, spell(question.answer)) for question in questions]
    pairs.append(_asked(_ALL, _all_values(chart)))
    return partial(_draw_chart, chart, style), tuple(pairs)


def _values(key: str, index: int) -> tuple[Draw, Pairs]:
    draw_it, pairs = _chart(key, index, plain=True)
    rng, chart = random.Random(f"{key} values {index}"), draw_it.args[0]
    asked = [_question("value", chart, rng) for _ in range(5)]
    spelled = {question.text: spell(question.answer) for question in asked}
    return draw_it, (*(_asked(*pair) for pair in spelled.items()), pairs[-1])


def _note(key: str, index: int) -> tuple[Draw, Pairs]:
    rng = random.Random(f"{key} note {index}")
    lines, pairs = _named_values(rng, rng.randint(1, 5))
    return partial(_draw_note, lines, rng.getrandbits(32)), pairs


def _label(key: str, index: int) -> tuple[Draw, Pairs]:
    rng = random.Random(f"{key} label {index}")
    lines, pairs = _named_values(rng, rng.randint(1, 3))
    if rng.random() < 0.4:  # a value alone
        line = pairs[0][1].strip()
        lines, pairs = [line], (_asked(_ALL, line),)
    return partial(_draw_label, lines, rng.getrandbits(32)), pairs


def _column(key: str, index: int) -> tuple[Draw, Pairs]:
    rng = random.Random(f"{key} column {index}")
    lines, pairs = _named_values(rng, rng.randint(2, 4))
    values = [float(line.split()[-1]) for line in lines]
    ends = (("highest", "maximum", max), ("lowest", "minimum", min))
    asked = [
        _asked(
            rng.choice((f"What is the {a} value?", f"What is the {b} in the chart?")),
            spell(round(10 * best(values))),
        )
        for a, b, best in ends
    ]
    return partial(_draw_columns, lines, rng.getrandbits(32)), (*pairs, *asked)


def _named_values(rng: random.Random, count: int) -> tuple[list[str], Pairs]:
    """Lines such as "Lima 3.5", and a question about each and about all."""
    names = rng.sample(rng.choice([*_DIMENSIONS.values()]), count)
    powers = (
        [rng.randint(1, 4)] * count
        if rng.random() < 0.5
        else rng.choices(range(1, 5), k=count)
    )
    values = [rng.choice((1, 10, 10)) * rng.randint(1, 10**power) for power in powers]
    spelled = dict(zip(names, map(spell, values), strict=True))
    lines = [f"{name} {value}" for name, value in spelled.items()]
    pairs = [
        _asked(f"What is the value for {name}?", value)
        for name, value in spelled.items()
    ]
    return lines, (*pairs, _asked(_ALL, ", ".join(lines)))


def _draw_label(lines: list[str], seed: int) -> tuple[Image.Image, Letters]:
    rng, (width, height) = random.Random(seed), SIZES["labels"]
    dark = rng.random() < 0.3
    paper, ink = (rng.randint(*span) for span in ((220, 255), (0, 90)))
    picture = Image.new("L", (width, height), ink if dark else paper)
    pen, part = ImageDraw.Draw(picture), height / len(lines)
    letters: Letters = []
    for number, line in enumerate(lines):
        font = _font(rng.choice(FONTS), rng.randint(8, 20))
        while pen.textlength(line, font) > width - 6 and font.size > 8:
            font = _font(font.path, int(font.size) - 1)
        left = rng.uniform(2, max(2, width - 2 - pen.textlength(line, font)))
        top = part * number + rng.uniform(0, max(0.0, part - font.size - 4))
        pen.text((left, top), line, paper if dark else ink, font)
        middle = top + 0.6 * font.size
        letters += _letters(line, left, middle, partial(pen.textlength, font=font))
    return picture.convert("RGB"), letters


def _draw_columns(lines: list[str], seed: int) -> tuple[Image.Image, Letters]:
    """Bars that go up or to the right, each with its name at its foot and its value at its end."""
    rng, (width, height) = random.Random(seed), SIZES["columns"]
    paper, ink, fill = (
        rng.randint(*span) for span in ((220, 255), (0, 90), (110, 200))
    )
    if rng.random() < 0.3:
        paper, ink = ink, paper
    picture = Image.new("L", (width, height), paper)
    pen, font = ImageDraw.Draw(picture), _font(rng.choice(FONTS), rng.randint(9, 12))
    names, values = zip(*(line.split() for line in lines), strict=True)
    sideways, letters, high = rng.random() < 0.4, Letters(), max(map(float, values))
    part = (height if sideways else width) / len(lines)
    thick = part * rng.uniform(0.2, 0.4)
    room = max(pen.textlength(text, font) for text in (names if sideways else [""])) + 4
    for number, (name, value) in enumerate(zip(names, values, strict=True)):
        middle, share = part * (number + 0.5), float(value) / high
        wide, long = pen.textlength(value, font), pen.textlength(name, font)
        if sideways:
            end = room + share * (width - room - pen.textlength("8888.8", font))
            pen.rectangle((room, middle - thick, end, middle + thick), fill)
            places = ((room - 3 - long, middle), (end + 2, middle))
        else:
            end = height - 14 - share * (height - 30)
            pen.rectangle((middle - thick, end, middle + thick, height - 14), fill)
            places = ((middle - long / 2, height - 7.0), (middle - wide / 2, end - 7))
        for (left, y), text in zip(places, (name, value), strict=True):
            pen.text((left, y), text, ink, font, anchor="lm")
            letters += _letters(text, left, y, lambda t: pen.textlength(t, font))
    return picture.convert("RGB"), letters


def _letters(
    text: str, left: float, y: float, width: Callable[[str], float]
) -> Letters:
    """The middles of the characters of a text that begins at `left`."""
    ends = [width(text[:at]) for at in range(len(text) + 1)]
    middles = [left + (low + high) / 2 for low, high in pairwise(ends)]
    found = ((x, CHARACTERS.find(c)) for x, c in zip(middles, text, strict=True))
    return [(x, y, number) for x, number in found if number >= 0]


@lru_cache
def _font(name: str, size: int) -> ImageFont.FreeTypeFont:
    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    return ImageFont.truetype(str(folder / f"{Path(name).stem}.ttf"), size)


def _draw_note(lines: list[str], seed: int) -> tuple[Image.Image, Letters]:
    """The lines from top to bottom, each somewhere in its part of the height."""
    rng, canvas = random.Random(seed), Canvas(Style(seed))
    part = canvas.height / len(lines)
    for number, line in enumerate(lines):
        larger = rng.uniform(-0.5, min(14, part / 4))
        room = min(
            canvas.width / 2 - 10, (canvas.style.size + larger) * 0.55 * len(line)
        )
        x = rng.uniform(room, canvas.width - room)
        at = (x, canvas.height - part * (number + rng.uniform(0.3, 0.7)))
        canvas.text(at, line, larger=larger, weight=canvas.style.weight)
    return _drawn(canvas)


def _drawn(canvas: Canvas) -> tuple[Image.Image, Letters]:
    """The picture of a canvas, and the letters of its texts."""
    canvas.agg.draw()
    size = canvas.width, canvas.height
    pixels = Image.frombuffer("RGBA", size, canvas.agg.buffer_rgba()).convert("RGB")
    renderer, letters = canvas.agg.get_renderer(), []
    for text in canvas.figure.findobj(Text):
        if text.get_text() and not text.get_rotation():
            box, font = text.get_window_extent(renderer), text.get_fontproperties()
            width = partial(_width, renderer, font)
            letters += _letters(
                text.get_text(), box.x0, canvas.height - (box.y0 + box.y1) / 2, width
            )
    return pixels, letters


def _width(renderer: Any, font: Any, text: str) -> float:
    return float(renderer.get_text_width_height_descent(text, font, ismath=False)[0])


def _draw_chart(chart: Chart, style: int) -> tuple[Image.Image, Letters]:
    drawn = []
    with patch.object(Canvas, "save", lambda canvas, _: drawn.append(_drawn(canvas))):
        draw(chart, style, Path())
    return drawn[0]


def _all_values(chart: Chart) -> str:
    """ "Lima 14, Oslo 3.5"; with series: "Men: Lima 14, Oslo 3.5; Women: Lima 2, Oslo 7"."""
    lines = []
    for name, values in zip(chart.series, chart.values, strict=True):
        shown = zip(chart.categories, map(spell, values), strict=True)
        listed = ", ".join(f"{category} {value}" for category, value in shown)
        lines.append(f"{name}: {listed}" if name else listed)
    return "; ".join(lines)


_MAKERS: dict[str, Callable[[str, int], tuple[Draw, Pairs]]] = {
    "charts": _chart,
    "plain": partial(_chart, plain=True),
    "values": _values,
    "notes": _note,
    "clocks": _clock,
    "columns": _column,
    "labels": _label,
}
