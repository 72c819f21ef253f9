"""Text that has to fit in a panel: measured in points, wrapped and shortened."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

ELLIPSIS = "…"
_SIZE = 100.0


def drawable(text: str) -> str:
    """One line, with a box for every character that the figures' font does not have."""
    return "".join(c if _font().get_char_index(ord(c)) else "□" for c in " ".join(text.split()))


def width(text: str, size: float) -> float:
    """How wide a line is, in points."""
    return sum(_advance(letter) for letter in text) * size


def clipped(text: str, size: float, room: float, keep: Literal["start", "end"] = "start") -> str:
    """The text, or as much of its start or end as fits in `room` points, with an ellipsis."""
    if width(text, size) <= room:
        return text
    for left in range(len(text) - 1, 0, -1):
        part = text[:left].rstrip() + ELLIPSIS if keep == "start" else ELLIPSIS + text[-left:]
        if width(part, size) <= room:
            return part
    return ELLIPSIS


def wrapped(text: str, size: float, room: float, most: int) -> list[str]:
    """The text in at most that many lines of `room` points; the last one is clipped."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if not lines[-1] or width(longer, size) <= room:
            lines[-1] = longer
        else:
            lines.append(word)
    if len(lines) > most:
        lines = [*lines[: most - 1], " ".join(lines[most - 1 :])]
    return [clipped(line, size, room) for line in lines if line]


@cache
def _advance(letter: str) -> float:
    """Width of a letter at size 1, from the font's own metrics."""
    font = _font()
    return float(font.load_char(ord(letter)).linearHoriAdvance / 65536 / _SIZE)


@cache
def _font() -> Any:
    from matplotlib.font_manager import FontProperties, findfont, get_font

    font = get_font(findfont(FontProperties(family="DejaVu Sans")))
    font.set_size(_SIZE, 72)
    return font
