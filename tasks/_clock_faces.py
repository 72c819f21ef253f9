"""Faces of synthetic clocks: a style drawn from a seed, and its picture without hands.

Lengths are in pixels of the finished 224 x 224 picture, angles in degrees clockwise from twelve.
The same seed gives the same style on any machine; fonts are those that matplotlib ships.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

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
HANDS = ("straight", "tapered", "leaf", "arrow")
ACCENTS: tuple[Colour, ...] = (
    (178, 24, 43), (33, 102, 172), (27, 120, 55), (118, 42, 131), (191, 91, 0), (0, 109, 111),
)  # fmt: skip


@dataclass(frozen=True)
class FaceStyle:
    """How a clock looks, but for the time."""

    page: Colour
    dial: Colour
    ink: Colour
    rim: Colour
    rim_width: float
    shape: str
    radius: float
    texture: str
    texture_seed: int
    numerals: str
    font: str
    numeral_size: float
    numeral_radius: float
    minute_ticks: bool
    hour_ticks: bool
    hour_hand: Colour
    minute_hand: Colour
    hand: str
    hand_width: float
    hour_length: float
    minute_length: float
    tail: float
    cap: float


def face_style(seed: str) -> FaceStyle:
    """The style that belongs to a seed."""
    rng = random.Random(seed)
    dark = rng.random() < 0.3
    dial = _shade(rng, 8, 62) if dark else _shade(rng, 205, 255)
    ink = _shade(rng, 200, 250) if dark else _shade(rng, 0, 70)
    numerals = rng.choice(NUMERALS)
    lettered = numerals in ("arabic", "roman", "quarters")
    size = rng.uniform(13, 22)
    hands = _hand_colours(rng, ink, dark=dark)
    return FaceStyle(
        page=_shade(rng, 20, 245),
        dial=dial,
        ink=ink,
        rim=rng.choice([ink, _shade(rng, 60, 190), rng.choice(ACCENTS)]),
        rim_width=rng.uniform(0, 9),
        shape=rng.choice(SHAPES),
        radius=rng.uniform(101, 109),
        texture=rng.choice(TEXTURES),
        texture_seed=rng.randrange(2**32),
        numerals=numerals,
        font=rng.choice(FONTS),
        numeral_size=size,
        numeral_radius=rng.uniform(70, 86 - size / 4),
        minute_ticks=numerals != "none" and rng.random() < 0.5,
        hour_ticks=numerals == "ticks" or (lettered and rng.random() < 0.7),
        hour_hand=hands[0],
        minute_hand=hands[1],
        hand=rng.choice(HANDS),
        hand_width=rng.uniform(7, 10),
        hour_length=rng.uniform(56, 62),
        minute_length=rng.uniform(88, 94),
        tail=rng.choice([0.0, 0.0, rng.uniform(8, 16)]),
        cap=rng.uniform(4, 9),
    )


def _shade(rng: random.Random, low: int, high: int) -> Colour:
    """A greyish colour of that lightness."""
    base = rng.randint(low, high)
    red, green, blue = (min(255, max(0, base + rng.randint(-18, 18))) for _ in range(3))
    return red, green, blue


def _hand_colours(rng: random.Random, ink: Colour, *, dark: bool) -> tuple[Colour, Colour]:
    """Of the hour and the minute hand, always in contrast to the dial."""
    if rng.random() < 0.5:
        return ink, ink
    accents = [rng.choice(ACCENTS), rng.choice(ACCENTS)]
    if dark:
        accents = [tuple(c + (255 - c) * 3 // 5 for c in accent) for accent in accents]  # type: ignore[misc]
    first, second = accents
    return rng.choice([(first, second), (ink, second), (first, first), (first, ink)])


@lru_cache(maxsize=128)
def face_picture(style: FaceStyle) -> Image.Image:
    """The clock without hands, RGB, SHARP times as large as the finished picture."""
    picture = Image.new("RGB", (SIZE * SHARP, SIZE * SHARP), style.page)
    draw = ImageDraw.Draw(picture)
    if style.rim_width >= 1:
        _outline(draw, style.shape, style.radius, style.rim)
    _outline(draw, style.shape, style.radius - style.rim_width, style.dial)
    picture = _textured(picture, style)
    draw = ImageDraw.Draw(picture)
    _ticks(draw, style)
    _numerals(draw, style)
    return picture


def spot(angle: float, distance: float) -> tuple[float, float]:
    """Where a point at an angle and a distance from the centre is, in pixels as drawn."""
    turn = math.radians(angle)
    return (
        (CENTRE + distance * math.sin(turn)) * SHARP,
        (CENTRE - distance * math.cos(turn)) * SHARP,
    )


def _outline(draw: ImageDraw.ImageDraw, shape: str, radius: float, fill: Colour) -> None:
    low, high = (CENTRE - radius) * SHARP, (CENTRE + radius) * SHARP
    box = (low, low, high, high)
    if shape == "square":
        draw.rectangle(box, fill)
    elif shape == "rounded":
        draw.rounded_rectangle(box, radius * SHARP * 0.35, fill)
    elif shape == "octagon":
        draw.regular_polygon((CENTRE * SHARP, CENTRE * SHARP, radius * SHARP), 8, 22.5, fill)
    else:
        draw.ellipse(box, fill)


def _textured(picture: Image.Image, style: FaceStyle) -> Image.Image:
    """A faint pattern over all of it: at most 10 of 255 levels, the hands stand out."""
    if style.texture == "plain":
        return picture
    rng = np.random.default_rng(style.texture_seed)
    side = SIZE * SHARP
    y, x = np.mgrid[0:side, 0:side] / side - 0.5
    if style.texture == "gradient":
        turn = rng.uniform(0, 2 * np.pi)
        pattern = 18 * (x * np.cos(turn) + y * np.sin(turn))
    elif style.texture == "grain":
        pattern = np.kron(rng.normal(0, 4, (SIZE // 2, SIZE // 2)), np.ones((2 * SHARP, 2 * SHARP)))
    elif style.texture == "stripes":
        pattern = 6 * np.sin(x * rng.uniform(40, 120))
    else:
        pattern = 6 * np.sin(np.hypot(x, y) * rng.uniform(60, 140))
    pixels = np.asarray(picture, np.float64) + np.clip(pattern, -10, 10)[..., None]
    return Image.fromarray(np.clip(np.rint(pixels), 0, 255).astype(np.uint8))


def _ticks(draw: ImageDraw.ImageDraw, style: FaceStyle) -> None:
    outer = style.radius - style.rim_width - 2
    for minute in range(60):
        on_hour = minute % 5 == 0
        if not (style.hour_ticks if on_hour else style.minute_ticks):
            continue
        length, width = (8, 3) if on_hour else (4, 1)
        ends = spot(6 * minute, outer), spot(6 * minute, outer - length)
        draw.line([*ends], style.ink, width * SHARP)


def _numerals(draw: ImageDraw.ImageDraw, style: FaceStyle) -> None:
    if style.numerals in ("ticks", "none"):
        return
    size = style.numeral_size * (0.8 if style.numerals == "roman" else 1.0)
    font = _font(style.font, round(size * SHARP))
    for hour in range(12):
        if style.numerals == "quarters" and hour % 3:
            continue
        text = ROMAN[hour] if style.numerals == "roman" else str(hour or 12)
        draw.text(spot(30 * hour, style.numeral_radius), text, style.ink, font, anchor="mm")


@lru_cache(maxsize=64)
def _font(name: str, size: int) -> ImageFont.FreeTypeFont:
    import matplotlib

    file = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / f"{name}.ttf"
    return ImageFont.truetype(str(file), size)
