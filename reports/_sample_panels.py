"""Drawing a grid of examples: picture, question, truth, and an answer a loss, marked ✓ or ✗.

The text is monospaced: a line of so many letters fits in a panel, whatever it says.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from smmd_bench.publishing.style import GREY, WIDTH, new_figure, shortened
from smmd_bench.publishing.tables import DASH

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from PIL.Image import Image

FONT = "DejaVu Sans Mono"
SIZE, LINE, LETTER = 7.5, 0.16, 0.0645
"""Points of the text, and inches from line to line and from letter to letter."""
MARGIN, GAP, TALLEST = 0.15, 0.2, 1.9
"""Inches: around the figure, between panels, and of a picture at most."""
LABEL = 12
"""Letters of a label at most; a longer one is a number that a key explains."""
MARKS = {True: ("✓", "#05603A"), False: ("✗", "#B3400A"), None: (DASH, GREY)}
"""Glyph and a dark colour, so that the glyph alone says it on grey paper."""


@dataclass(frozen=True)
class Panel:
    """An example. `answers` are label, text and whether it is exact (None: there is none).

    `pictured` without a `picture`: the example has one that cannot be read.
    """

    question: str
    truth: str
    answers: Sequence[tuple[str, str, bool | None]]
    picture: Image | None = None
    pictured: bool = False


@dataclass(frozen=True)
class Block:
    """The panels of a task under a heading, in that many columns."""

    heading: str
    panels: Sequence[Panel]
    columns: int


Text = tuple[float, float, str, dict[str, Any]]
"""Letters from the left, lines from the top, the text and its style."""
Row = tuple[float, int, "Sequence[Image | list[Text] | None]"]
"""Axes side by side: their inches in height, how many fit, and pictures (None: lost) or texts."""


def sample_figure(blocks: Sequence[Block]) -> Figure:
    """The blocks, one under another."""
    rows = [row for block in blocks for row in _rows(block)]
    heights = [height for height, _, _ in rows]
    figure = new_figure(WIDTH, sum(heights))
    figure.set_layout_engine("none")
    margins = {"left": MARGIN / WIDTH, "right": 1 - MARGIN / WIDTH, "bottom": 0, "top": 1}
    places = figure.add_gridspec(len(rows), 1, height_ratios=heights, hspace=0, **margins)
    for at, (height, columns, contents) in enumerate(rows):
        room = _room(columns)
        parts = places[at].subgridspec(1, columns, wspace=GAP / room)
        for column, content in enumerate(contents):
            axis = figure.add_subplot(parts[column])
            if isinstance(content, list):
                axis.set(xlim=(0, room / LETTER), ylim=(height / LINE, 0))
                _write(axis, content)
            else:
                _show(axis, content)
    return figure


def drawable(text: str) -> str:
    """One line, with a box for every character that the font does not have."""
    return "".join(c if ord(c) in _letters() else "□" for c in " ".join(text.split()))


def clipped(text: str, letters: int, *, keep_end: bool) -> str:
    """The text, or as much of its start or end as that many letters hold with an ellipsis."""
    if len(text) <= letters:
        return text
    return "…" + text[1 - letters :] if keep_end else text[: letters - 1] + "…"


@cache
def _letters() -> frozenset[int]:
    from matplotlib.font_manager import findfont, get_font

    return frozenset(get_font(findfont(FONT)).get_charmap())


def _room(columns: int) -> float:
    """Inches across a panel."""
    return (WIDTH - 2 * MARGIN - (columns - 1) * GAP) / columns


def _rows(block: Block) -> Iterator[Row]:
    """The heading with what all panels share, then in turn a row of pictures and one of texts."""
    panels, columns = block.panels, block.columns
    letters, widest = (int(_room(count) / LETTER) for count in (columns, 1))
    questions, labels = {panel.question for panel in panels}, _labels(block)
    shared = len(questions) == 1 < len(panels)
    key = ", ".join(f"{text}: {label}" for label, text in labels.items() if text != label)
    lines = _wrapped(questions.pop(), widest, 2) if shared else []
    lines += _wrapped(key, widest)
    heading = {"size": 10, "weight": "bold", "family": "DejaVu Sans"}
    head: list[Text] = [(0, 1.5, drawable(block.heading), heading)]
    head += [(0, 2.7 + at, line, {}) for at, line in enumerate(lines)]
    yield LINE * (2.2 + len(lines)), 1, [head]
    pictured = any(panel.pictured for panel in panels)
    shapes = [panel.picture.size if panel.picture else (1, 1) for panel in panels]
    tallest = max(min(TALLEST, _room(columns) * up / across) for across, up in shapes)
    asked = [[] if shared else _wrapped(p.question, letters, 3 if pictured else 6) for p in panels]
    first = max(map(len, asked))
    height = LINE * (first + max(len(panel.answers) for panel in panels) + 2.3)
    for at in range(0, len(panels), columns):
        here = panels[at : at + columns]
        if pictured:
            yield tallest, columns, [panel.picture for panel in here]
        texts = [list(_answers(panel, labels, letters, first + 1)) for panel in here]
        for own, question in zip(texts, asked[at:], strict=False):
            own += [(0.0, line + 1.0, text, {}) for line, text in enumerate(question)]
        yield height, columns, texts


def _labels(block: Block) -> dict[str, str]:
    """How each label is written: long ones as a name and a number, which the heading explains."""
    shown: dict[str, str] = {}
    for label in (label for panel in block.panels for label, _, _ in panel.answers):
        short = f"{shortened(label.partition('[')[0], LABEL - 4)} ({len(shown) + 1})"
        shown.setdefault(label, label if len(label) <= LABEL else short)
    return shown


def _wrapped(text: str, letters: int, most: int | None = None) -> list[str]:
    return textwrap.wrap(drawable(text), letters, max_lines=most, placeholder="…")


def _answers(panel: Panel, labels: dict[str, str], letters: int, line: int) -> Iterator[Text]:
    """The truth and the answers from that line on, all cut at the same end."""
    start = 3 + max(map(len, ("truth", *labels.values())))
    room = letters - start
    keep_end = len(drawable(panel.truth)) > room
    bold = {"weight": "bold"}
    yield 2, line, "truth", bold
    yield start, line, clipped(drawable(panel.truth), room, keep_end=keep_end), bold
    for at, (label, text, exact) in enumerate(panel.answers, line + 1):
        mark, colour = MARKS[exact]
        shown = drawable(text) if text.strip() or exact is None else "(nothing)"
        yield 0, at, mark, {"color": colour, "size": 10}
        yield 2, at, drawable(labels[label]), {}
        yield start, at, clipped(shown, room, keep_end=keep_end), {}


def _write(axis: Axes, texts: Iterable[Text]) -> None:
    axis.set_axis_off()
    for letter, line, text, style in texts:
        style = {"family": FONT, "size": SIZE, "parse_math": False, **style}
        axis.text(letter, line, text, va="baseline", **style)


def _show(axis: Axes, picture: Image | None) -> None:
    """A picture with a thin frame, or an empty frame that says it is gone."""
    axis.set(xticks=[], yticks=[], anchor="NW", box_aspect=1 if picture is None else None)
    axis.grid(visible=False)
    axis.spines[:].set(visible=True, color=GREY, linewidth=0.6)
    if picture is None:
        middle: Any = {"color": GREY, "ha": "center", "va": "center", "size": SIZE}
        axis.text(0.5, 0.5, "picture not found", transform=axis.transAxes, **middle)
    else:
        axis.imshow(picture)
