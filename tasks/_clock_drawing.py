"""Synthetic clocks: a face in a style drawn from a seed, and its hands, as in the Clock-Time data.

Lengths are in pixels of the finished 224 x 224 picture, angles in degrees clockwise from twelve.
The hands turn about the centre; the minute hand points to 6m degrees, the hour hand to 30h + m/2.
In the data they are about 92 and 60 pixels long and 9 wide. The same seed gives the same style on
any machine; fonts are those that matplotlib ships.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.metadata import version
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from smmd_bench.contracts import cache_folder
from smmd_bench.storage.files import atomic

from ._clock_data import Clock
from ._picture_files import draw_missing

DRAWING = 1
"""Version of the pictures: raise it when one pixel changes."""
SIZE = 224
CENTRE = SIZE / 2
SHARP = 2
"""Drawn so many times larger, then averaged down."""

Colour = tuple[int, int, int]

ROMAN = ("XII", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI")
FONTS = (
    "DejaVuSans", "DejaVuSans-Bold", "DejaVuSerif", "DejaVuSerif-Bold", "DejaVuSansMono-Bold",
    "STIXGeneral", "STIXGeneralBol", "cmr10", "cmss10",
)  # fmt: skip
NUMERALS = ("arabic", "arabic", "roman", "roman", "quarters", "ticks", "none")
"""Drawn at random; the first two are the most common on real clocks."""
TEXTURES = ("plain", "plain", "gradient", "grain", "stripes", "rings")
SHAPES = ("circle", "circle", "circle", "square", "rounded", "octagon")
HANDS = {
    "straight": ((0, 0, 1), (1, 0, 1)),
    "tapered": ((0, 0, 1.3), (1, 0, 0.5)),
    "leaf": ((0, 0, 0.6), (0.5, 0, 1.5), (1, 0, 0.3)),
    "arrow": ((0, 0, 0.7), (1, -16, 0.7), (1, -16, 1.8), (1, 0, 0)),
}
"""Points of one side: a share of the length, pixels more, and a share of half the width."""
ACCENTS: tuple[Colour, ...] = (
    (178, 24, 43), (33, 102, 172), (27, 120, 55), (118, 42, 131), (191, 91, 0), (0, 109, 111),
)  # fmt: skip


class FaceStyle:
    """How a clock looks, except for the time: all of it is drawn from a seed."""

    def __init__(self, seed: str) -> None:
        rng = random.Random(seed)

        # Every draw comes in this order: the order is the data.
        dark = rng.random() < 0.3
        self.dial = _shade(rng, 8, 62) if dark else _shade(rng, 205, 255)
        self.ink = _shade(rng, 200, 250) if dark else _shade(rng, 0, 70)
        self.numerals = rng.choice(NUMERALS)
        has_numerals = self.numerals in ("arabic", "roman", "quarters")
        self.numeral_size = rng.uniform(13, 22)
        self.hour_hand, self.minute_hand = _hand_colours(rng, self.ink, dark=dark)

        self.page = _shade(rng, 20, 245)
        self.rim = rng.choice([self.ink, _shade(rng, 60, 190), rng.choice(ACCENTS)])
        self.rim_width = rng.uniform(0, 9)
        self.shape = rng.choice(SHAPES)
        self.radius = rng.uniform(101, 109)
        self.texture = rng.choice(TEXTURES)
        self.texture_seed = rng.randrange(2**32)

        self.font = rng.choice(FONTS)
        self.numeral_radius = rng.uniform(70, 86 - self.numeral_size / 4)
        self.minute_ticks = self.numerals != "none" and rng.random() < 0.5
        self.hour_ticks = self.numerals == "ticks" or (
            has_numerals and rng.random() < 0.7
        )

        self.hand = rng.choice(tuple(HANDS))
        self.hand_width = rng.uniform(7, 10)
        self.hour_length = rng.uniform(56, 62)
        self.minute_length = rng.uniform(88, 94)
        self.tail = rng.choice([0.0, 0.0, rng.uniform(8, 16)])
        self.cap = rng.uniform(4, 9)


def draw_clock(style: FaceStyle, hour: int, minute: int) -> Image.Image:
    """A 224 x 224 RGB picture. hour: 1..12."""
    picture = _face(style).copy()
    draw = ImageDraw.Draw(picture)
    # The minute hand lies above the hour hand, as on a real clock.
    hour_angle = 30 * (hour % 12) + minute / 2
    _hand(draw, style, hour_angle, style.hour_length, style.hour_hand)
    _hand(draw, style, 6 * minute, style.minute_length, style.minute_hand)
    draw.ellipse(_box(style.cap), style.minute_hand)
    # Averaged, since Pillow draws polygons without smoothing their edges.
    return picture.reduce(SHARP)


def _hand(
    draw: ImageDraw.ImageDraw,
    style: FaceStyle,
    angle: float,
    length: float,
    colour: Colour,
) -> None:
    # The outline goes from the centre to the tip on one side, and back on the other.
    half = style.hand_width / 2
    side = [(-style.tail, half)] if style.tail else []
    for share, pixels, width in HANDS[style.hand]:
        side.append((length * share + pixels, half * width))

    right_side = [_beside(angle, along, across) for along, across in side]
    left_side = [_beside(angle, along, -across) for along, across in reversed(side)]
    draw.polygon([*right_side, *left_side], colour)


def _beside(angle: float, along: float, across: float) -> tuple[float, float]:
    """A point so far along a direction from the centre, and so far to its right."""
    x, y = _spot(angle, along)
    dx, dy = _spot(angle + 90, across)
    return x + dx - CENTRE * SHARP, y + dy - CENTRE * SHARP


def _box(radius: float) -> tuple[float, float, float, float]:
    low, high = (CENTRE - radius) * SHARP, (CENTRE + radius) * SHARP
    return low, low, high, high


def _shade(rng: random.Random, low: int, high: int) -> Colour:
    """A greyish colour of that lightness."""
    base = rng.randint(low, high)
    red, green, blue = (min(255, max(0, base + rng.randint(-18, 18))) for _ in range(3))
    return red, green, blue


def _hand_colours(
    rng: random.Random, ink: Colour, *, dark: bool
) -> tuple[Colour, Colour]:
    """Of the hour and the minute hand, always in contrast to the dial."""
    if rng.random() < 0.5:
        return ink, ink
    accents = [rng.choice(ACCENTS), rng.choice(ACCENTS)]
    if dark:
        accents = [_lighten(accent) for accent in accents]
    first, second = accents
    return rng.choice([(first, second), (ink, second), (first, first), (first, ink)])


def _lighten(colour: Colour) -> Colour:
    red, green, blue = (channel + (255 - channel) * 3 // 5 for channel in colour)
    return red, green, blue


@lru_cache(maxsize=128)
def _face(style: FaceStyle) -> Image.Image:
    """The clock without hands, RGB, SHARP times as large as the finished picture."""
    picture = Image.new("RGB", (SIZE * SHARP, SIZE * SHARP), style.page)
    draw = ImageDraw.Draw(picture)
    if style.rim_width >= 1:  # a thinner one would be a broken line
        _outline(draw, style.shape, style.radius, style.rim)
    _outline(draw, style.shape, style.radius - style.rim_width, style.dial)
    picture = _textured(picture, style)
    draw = ImageDraw.Draw(picture)
    _ticks(draw, style)
    _numerals(draw, style)
    return picture


def _spot(angle: float, distance: float) -> tuple[float, float]:
    """Where a point at an angle and a distance from the centre is, in pixels as drawn."""
    turn = math.radians(angle)
    return (
        (CENTRE + distance * math.sin(turn)) * SHARP,
        (CENTRE - distance * math.cos(turn)) * SHARP,
    )


def _outline(
    draw: ImageDraw.ImageDraw, shape: str, radius: float, fill: Colour
) -> None:
    box = _box(radius)
    if shape == "square":
        draw.rectangle(box, fill)
    elif shape == "rounded":
        draw.rounded_rectangle(box, radius * SHARP * 0.35, fill)
    elif shape == "octagon":
        draw.regular_polygon(
            (CENTRE * SHARP, CENTRE * SHARP, radius * SHARP), 8, 22.5, fill
        )
    else:
        draw.ellipse(box, fill)


def _textured(picture: Image.Image, style: FaceStyle) -> Image.Image:
    """A faint pattern over all of it: at most 10 of 255 levels, the hands stand out."""
    if style.texture == "plain":
        return picture
    rng = np.random.default_rng(style.texture_seed)
    side = SIZE * SHARP
    y, x = np.mgrid[0:side, 0:side] / side - 0.5  # [H, W] each

    if style.texture == "gradient":
        turn = rng.uniform(0, 2 * np.pi)
        pattern = 18 * (x * np.cos(turn) + y * np.sin(turn))
    elif style.texture == "grain":
        grains = rng.normal(0, 4, (SIZE // 2, SIZE // 2))
        grain = np.ones((2 * SHARP, 2 * SHARP))
        pattern = np.kron(grains, grain)
    elif style.texture == "stripes":
        frequency = rng.uniform(40, 120)
        pattern = 6 * np.sin(x * frequency)
    else:
        frequency = rng.uniform(60, 140)
        distance = np.hypot(x, y)
        pattern = 6 * np.sin(distance * frequency)

    # Rounded, because the conversion to bytes would cut off and darken the picture.
    levels = np.clip(pattern, -10, 10)
    pixels = np.asarray(picture, np.float64)  # [H, W, 3]
    pixels = np.rint(pixels + levels[..., None])
    pixels = np.clip(pixels, 0, 255)
    return Image.fromarray(pixels.astype(np.uint8))


def _ticks(draw: ImageDraw.ImageDraw, style: FaceStyle) -> None:
    outer = style.radius - style.rim_width - 2
    for minute in range(60):
        on_hour = minute % 5 == 0
        if not (style.hour_ticks if on_hour else style.minute_ticks):
            continue
        length, width = (8, 3) if on_hour else (4, 1)
        start = _spot(6 * minute, outer)
        end = _spot(6 * minute, outer - length)
        draw.line([start, end], style.ink, width * SHARP)


def _numerals(draw: ImageDraw.ImageDraw, style: FaceStyle) -> None:
    if style.numerals in ("ticks", "none"):
        return
    is_roman = style.numerals == "roman"
    # Roman numerals are wider: VIII would run into its neighbours.
    size = style.numeral_size * (0.8 if is_roman else 1.0)
    font = _font(style.font, round(size * SHARP))
    for hour in range(0, 12, 3 if style.numerals == "quarters" else 1):
        text = ROMAN[hour] if is_roman else str(hour or 12)
        at = _spot(30 * hour, style.numeral_radius)
        draw.text(at, text, style.ink, font, anchor="mm")


@lru_cache(maxsize=64)
def _font(name: str, size: int) -> ImageFont.FreeTypeFont:
    import matplotlib

    # The same files on any machine: system fonts would change the pixels.
    file = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / f"{name}.ttf"
    return ImageFont.truetype(str(file), size)


@cache
def drawing_version() -> str:
    """What a pixel may depend on: our version, Pillow's, and matplotlib's for its fonts."""
    return f"v{DRAWING}-pillow{version('pillow')}-matplotlib{version('matplotlib')}"


def picture_files(clocks: Sequence[Clock], seed: int) -> list[Path]:
    """The file of each clock, drawn where it is not there yet; safe in several processes."""
    # The name has all that pixels depend on, so that a file is right if it is there.
    root = cache_folder() / "clock_time" / f"{drawing_version()}-seed{seed}"
    paths = [root / clock.folder / f"{clock.face}.png" for clock in clocks]
    pairs = zip(clocks, paths, strict=True)
    draw_missing(_draw_one, [(seed, clock, path) for clock, path in pairs])
    return paths


def _draw_one(seed: int, clock: Clock, path: Path) -> None:
    picture = draw_clock(task_face(seed, clock.face), clock.hour, clock.minute)
    with atomic(path) as part:
        # The least compression: 14,400 pictures are written once, and time counts more.
        picture.save(part, "png", compress_level=1)


@lru_cache(maxsize=128)
def task_face(seed: int, face: int) -> FaceStyle:
    """The style of one of the task's faces, 0..99: one object, which `_face` draws once."""
    return FaceStyle(f"clock_time {seed} {face}")
