"""Drawing a grid of examples: picture, question, truth, and an answer a loss, marked ✓ or ✗.

Everything is placed in inches, so that each panel has the room that its lines need.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from smmd_bench.publishing.style import GREY, WIDTH, new_figure
from smmd_bench.publishing.tables import DASH

from ._text_fit import clipped, drawable, width, wrapped

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from PIL.Image import Image

SIZE, LINE = 8.0, 0.165
"""Points of the text, and inches from line to line."""

MARGIN, GAP, TALLEST = 0.15, 0.2, 1.9
"""Inches: around the figure, between panels, and of a picture at most."""

LABEL = 60.0
"""Points of a label at most."""

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

    @cached_property
    def height(self) -> float:
        """Inches of the whole block."""
        return self._top + len(self._rows) * self._row_height

    @cached_property
    def shared(self) -> list[str]:
        """The lines of the question that all panels ask; empty where they ask different ones."""
        questions = {panel.question for panel in self.panels}
        if len(self.panels) < 2 or len(questions) > 1:
            return []
        return wrapped(drawable(questions.pop()), SIZE, 72 * (WIDTH - 2 * MARGIN), 2)

    @cached_property
    def labels(self) -> dict[str, str]:
        """How each label is written: long ones as a name and a number, which `key` explains."""
        shown: dict[str, str] = {}
        for label in (label for panel in self.panels for label, _, _ in panel.answers):
            if label not in shown:
                short = f"{label.partition('[')[0]} ({len(shown) + 1})"
                fits = width(drawable(label), SIZE) <= LABEL
                shown[label] = drawable(label if fits else short)
        return shown

    @cached_property
    def key(self) -> list[str]:
        """The lines that say which labels the numbered ones stand for, whole and never cut."""
        numbered = [f"{text}: {label}" for label, text in self.labels.items() if text != label]
        room = 72 * (WIDTH - 2 * MARGIN)
        return wrapped(drawable(", ".join(numbered)), SIZE, room, None)

    def draw(self, figure: Figure, top: float) -> None:
        """Draw the block with its upper edge that many inches above the figure's lower one."""
        _write(figure, MARGIN, top - 0.25, drawable(self.heading), size=10, weight="bold")
        for number, line in enumerate([*self.shared, *self.key]):
            _write(figure, MARGIN, top - 0.45 - number * LINE, line)
        for row, panels in enumerate(self._rows):
            for column, panel in enumerate(panels):
                left = MARGIN + column * (self._room + GAP)
                self._draw(figure, panel, left, top - self._top - row * self._row_height)

    @property
    def _rows(self) -> list[Sequence[Panel]]:
        starts = range(0, len(self.panels), self.columns)
        return [self.panels[at : at + self.columns] for at in starts]

    @property
    def _top(self) -> float:
        """Inches from the upper edge to the panels."""
        lines = len(self.shared) + len(self.key)
        return 0.4 + LINE * lines + (0.05 if lines else 0)

    @property
    def _room(self) -> float:
        """Inches across a panel."""
        return (WIDTH - 2 * MARGIN - (self.columns - 1) * GAP) / self.columns

    @cached_property
    def _picture_height(self) -> float:
        found = [_scaled(p.picture, self._room)[1] for p in self.panels if p.pictured]
        return max(found, default=0.0)

    @cached_property
    def _question_lines(self) -> int:
        return max((len(self._question(panel)) for panel in self.panels), default=0)

    @cached_property
    def _row_height(self) -> float:
        answers = max((len(panel.answers) for panel in self.panels), default=0)
        picture = self._picture_height + 0.08 if self._picture_height else 0.0
        return picture + LINE * (self._question_lines + 1 + answers) + 0.3

    def _question(self, panel: Panel) -> list[str]:
        if self.shared:
            return []
        most = 3 if panel.pictured else 6
        return wrapped(drawable(panel.question), SIZE, 72 * self._room, most)

    def _draw(self, figure: Figure, panel: Panel, left: float, top: float) -> None:
        if panel.pictured:
            _show(figure, panel.picture, left, top, self._room)
            top -= self._picture_height + 0.08
        lines = self._question(panel)
        for number, line in enumerate(lines, 1):
            _write(figure, left, top - number * LINE, line)
        top -= self._question_lines * LINE
        indent = max(width(text, SIZE) for text in ("truth ", *self.labels.values()))
        start = left + 0.17 + (indent + 6) / 72
        room = 72 * (left + self._room - start)
        keep: Any = "start" if width(drawable(panel.truth), SIZE) <= room else "end"
        _write(figure, left + 0.17, top - LINE, "truth", weight="bold")
        truth = clipped(drawable(panel.truth), SIZE, 0.92 * room, keep)
        _write(figure, start, top - LINE, truth, weight="bold")
        for number, (label, text, exact) in enumerate(panel.answers, 2):
            mark, colour = MARKS[exact]
            at = top - number * LINE
            _write(figure, left, at, mark, size=10, color=colour)
            _write(figure, left + 0.17, at, self.labels[label])
            shown = drawable(text) if text.strip() or exact is None else "(nothing)"
            _write(figure, start, at, clipped(shown, SIZE, room, keep))


def grid(blocks: Sequence[Block]) -> Figure:
    """The blocks, one under another."""
    total = sum(block.height for block in blocks)
    figure = new_figure(WIDTH, total)
    figure.set_layout_engine("none")
    top = total
    for block in blocks:
        block.draw(figure, top)
        top -= block.height
    return figure


def _write(figure: Figure, left: float, bottom: float, text: str, **style: Any) -> None:
    across, up = figure.get_size_inches()
    style = {"size": SIZE, **style}
    figure.text(left / across, bottom / up, text, parse_math=False, va="baseline", **style)


def _show(figure: Figure, picture: Image | None, left: float, top: float, room: float) -> None:
    """A picture with a thin frame, or an empty frame that says it is gone."""
    across, up = figure.get_size_inches()
    wide, high = _scaled(picture, room)
    axis = figure.add_axes((left / across, (top - high) / up, wide / across, high / up))
    axis.set_xticks([])
    axis.set_yticks([])
    axis.grid(visible=False)
    for spine in axis.spines.values():
        spine.set(visible=True, color=GREY, linewidth=0.6)
    if picture is None:
        axis.text(
            0.5, 0.5, "picture not found", size=SIZE, color=GREY, ha="center", va="center",
            transform=axis.transAxes,
        )  # fmt: skip
    else:
        axis.imshow(picture, aspect="auto")


def _scaled(picture: Image | None, room: float) -> tuple[float, float]:
    """Inches of a picture, its shape kept, in a panel that wide; of a lost one, a square."""
    shape = (1, 1) if picture is None else picture.size
    scale = min(room / shape[0], TALLEST / shape[1])
    return scale * shape[0], scale * shape[1]
