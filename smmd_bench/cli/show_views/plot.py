"""Digit distributions as text: a block a digit, as high as its probability."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .example import Answered, Distribution

BLOCKS = " ▁▂▃▄▅▆▇█"
_PANEL = 16  # ten digits, a space, p(target) as .42, two of a gap


@dataclass(frozen=True)
class Band:
    """Panels side by side: head lines, then one line a loss."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, str], ...]  # loss, its panels


def draw_bands(answers: Sequence[Answered], width: int) -> list[Band]:
    """Lines of the panels of every numeric token of the target, as many side by side as fit.

    A panel has ten columns, one a digit, and p of the true token; `width` is what the names of the
    losses leave. A mark stands above the leading digit of the true token. A token of the final
    answer is called "answer", with the place of its first digit in it; others are called "token".
    """
    known = {d.digit: d for answer in answers for d in answer.distributions}
    positions = sorted(known)
    beside = max(1, (width + 2) // _PANEL)
    bands = []
    for start in range(0, len(positions), beside):
        here = positions[start : start + beside]
        tokens = [known[position] for position in here]
        leading = (int(f"{abs(token.target_value):e}"[0]) for token in tokens)
        marks = (f"{'':{digit}}▼" for digit in leading)
        heads = (map(_title, tokens), marks, ("0123456789 p" for _ in here))
        rows = ((answer.loss, _join(_panel(answer, at) for at in here)) for answer in answers)
        bands.append(Band(tuple(map(_join, heads)), tuple(rows)))
    return bands


def _title(distribution: Distribution) -> str:
    """`answer 1: 7` for the answer's first digit, `token 3: 7` for the target's third number."""
    place, value = distribution.answer_digit, f"{distribution.target_value:g}"
    if place is None or place < 0:
        return f"token {distribution.digit + 1}: {value}"
    return f"answer {place + 1}: {value}"


def _panel(answer: Answered, position: int) -> str:
    """The blocks of one token, and p of the true one in three characters: `.42`, `1.0`."""
    for found in answer.distributions:
        if found.digit == position:
            p = "1.0" if found.p_target >= 0.995 else f"{found.p_target:.2f}"[1:]
            return f"{''.join(map(bar, found.p))} {p}"
    return ""


def bar(p: float) -> str:
    """The block of a probability; below two percent none."""
    return BLOCKS[0] if p < 0.02 else BLOCKS[max(1, min(8, round(p * 8)))]


def _join(cells: Iterable[str]) -> str:
    return "".join(f"{cell:<{_PANEL}}" for cell in cells).rstrip()
