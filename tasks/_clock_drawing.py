"""Synthetic clocks: hands on a face, as in the Clock-Time data.

The hands turn about the centre of a 224 x 224 RGB picture; the minute hand points to 6m degrees,
the hour hand to 30h + m/2. In the data they are about 92 and 60 pixels long and 9 wide.
"""

from __future__ import annotations

from PIL import Image, ImageDraw

from ._clock_faces import CENTRE, SHARP, Colour, FaceStyle, face_picture, spot


def draw_clock(style: FaceStyle, hour: int, minute: int, quarter_turns: int = 0) -> Image.Image:
    """A 224 x 224 RGB picture. hour: 1..12. quarter_turns: of the whole picture, clockwise."""
    picture = face_picture(style).copy()
    draw = ImageDraw.Draw(picture)
    _hand(draw, style, 30 * (hour % 12) + minute / 2, style.hour_length, style.hour_hand)
    _hand(draw, style, 6 * minute, style.minute_length, style.minute_hand)
    _disc(draw, style.cap, style.minute_hand)
    picture = picture.reduce(SHARP)
    return picture.rotate(-90 * quarter_turns) if quarter_turns % 4 else picture


def _hand(
    draw: ImageDraw.ImageDraw, style: FaceStyle, angle: float, length: float, colour: Colour
) -> None:
    half = style.hand_width / 2
    if style.hand == "straight":
        sides = [(0.0, half), (length, half)]
    elif style.hand == "tapered":
        sides = [(0.0, half * 1.3), (length, half * 0.5)]
    elif style.hand == "leaf":
        sides = [(0.0, half * 0.6), (length * 0.5, half * 1.5), (length, half * 0.3)]
    else:
        neck = length - 16
        sides = [(0.0, half * 0.7), (neck, half * 0.7), (neck, half * 1.8), (length, 0.0)]
    if style.tail:
        sides = [(-style.tail, half), *sides]
    right = [_beside(angle, along, across) for along, across in sides]
    left = [_beside(angle, along, -across) for along, across in reversed(sides)]
    draw.polygon([*right, *left], colour)


def _beside(angle: float, along: float, across: float) -> tuple[float, float]:
    """A point so far along a direction from the centre, and so far to its right."""
    x, y = spot(angle, along)
    dx, dy = spot(angle + 90, across)
    return x + dx - CENTRE * SHARP, y + dy - CENTRE * SHARP


def _disc(draw: ImageDraw.ImageDraw, radius: float, colour: Colour) -> None:
    low, high = (CENTRE - radius) * SHARP, (CENTRE + radius) * SHARP
    draw.ellipse((low, low, high, high), colour)
