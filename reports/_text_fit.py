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


def wrapped(text: str, size: float, room: float, most: int | None) -> list[str]:
    """The text in at most that many lines of `room` points; the last one is clipped.

    A word that is wider than a line goes on in the next. None: as many lines as it takes.
    """
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if width(longer, size) <= room:
            lines[-1] = longer
        else:
            lines += _parts(word, size, room)
    if most is not None and len(lines) > most:
        lines = [*lines[: most - 1], " ".join(lines[most - 1 :])]
    return [clipped(line, size, room) for line in lines if line]


def _parts(word: str, size: float, room: float) -> list[str]:
    """A word in parts that fit."""
    parts = [""]
    for letter in word:
        if parts[-1] and width(parts[-1] + letter, size) > room:
            parts.append("")
        parts[-1] += letter
    return parts


@cache
def _advance(letter: str) -> float:
    """Width of a letter at size 1, from the font's own metrics."""
    font = _font()
    return float(font.load_char(ord(letter)).linearHoriAdvance / 65536 / _SIZE)


@cache
def _font() -> Any:
    from matplotlib.font_manager import FontProperties, findfont
    from matplotlib.ft2font import FT2Font

    # not `get_font`: its fonts are matplotlib's own, which sets their size as it draws
    font = FT2Font(findfont(FontProperties(family="DejaVu Sans")))
    font.set_size(_SIZE, 72)
    return font
