"""Digit distributions as text: a block a digit, as high as its probability."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .example import Answered, Distribution

BLOCKS = " ▁▂▃▄▅▆▇█"
PLAIN = " .:-=+*#@"
"""The same nine heights where the terminal has no blocks."""
_PANEL = 16  # ten digits, a space, p(target) as .42, two of a gap
_TEN = "0123456789"


@dataclass(frozen=True)
class Band:
    """The panels that stand beside each other: head lines, then one line a loss."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, str], ...]  # loss, its panels


def bands(answers: Sequence[Answered], width: int, *, blocks: bool = True) -> list[Band]:
    """Lines of the panels of every numeric token of the target, as many beside each other as fit.

    A panel has ten columns, one a digit, and p of the true token; `width` is what is left beside
    the names of the losses. A mark stands above the true digit. The tokens of the final answer are
    called "answer", with the place of their first digit in it; others are "token".
    """
    heights = BLOCKS if blocks else PLAIN
    positions = sorted({d.digit for answer in answers for d in answer.distributions})
    beside = max(1, (width + 2) // _PANEL)
    found = []
    for start in range(0, len(positions), beside):
        shown = positions[start : start + beside]
        known = {d.digit: d for a in answers for d in a.distributions if d.digit in shown}
        titles = (_title(known[k]) for k in shown)
        marks = (" " * true_digit(known[k]) + ("▼" if blocks else "v") for k in shown)
        heads = tuple(_beside(cells) for cells in (titles, marks, (f"{_TEN} p" for _ in shown)))
        rows = tuple((a.loss, _beside(_panel(a, k, heights) for k in shown)) for a in answers)
        found.append(Band(heads, rows))
    return found


def _title(distribution: Distribution) -> str:
    """`answer 1: 7` of the answer's first digit, `token 3: 7` of the target's third number."""
    place, value = distribution.answer_digit, f"{distribution.target_value:g}"
    if place is None or place < 0:
        return f"token {distribution.digit + 1}: {value}"
    return f"answer {place + 1}: {value}"


def true_digit(distribution: Distribution) -> int:
    """The leading digit of the true token's value: what a panel's ten digits are."""
    return int(f"{abs(distribution.target_value):e}"[0])


def bar(p: float, heights: str = BLOCKS) -> str:
    """The block of a probability; the lowest one from two percent on."""
    if p < 0.02:
        return heights[0]
    return heights[max(1, min(8, round(p * 8)))]


def _panel(answer: Answered, position: int, heights: str) -> str:
    for found in answer.distributions:
        if found.digit == position:
            return "".join(bar(p, heights) for p in found.p) + f" {_share(found.p_target)}"
    return ""


def _share(p: float) -> str:
    """Three characters: `.42`, `1.0`."""
    return "1.0" if p >= 0.995 else f"{p:.2f}"[1:]


def _beside(cells: Iterable[str]) -> str:
    return "".join(f"{cell:<{_PANEL}}" for cell in cells).rstrip()
