"""How a synthetic chart looks: palette, background, font, legend, grid, frame, markers.

Nothing here changes what the chart shows; all of it is drawn from one seed.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal

_PALETTES = (
    ("#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#b07aa1", "#9c755f"),
    ("#1b9e77", "#d95f02", "#7570b3", "#e7298a", "#66a61e", "#e6ab02"),
    ("#003f5c", "#ff6361", "#ffa600", "#58508d", "#bc5090", "#2f9e8f"),
    ("#264653", "#e9c46a", "#e76f51", "#2a9d8f", "#8ab17d", "#b56576"),
    ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7"),
)
_LIGHT = (("#ffffff", "#ffffff"), ("#ffffff", "#eef2f5"), ("#faf6ee", "#faf6ee"))
_DARK = ("#22272e", "#2d333b")
_SIZES = {"DejaVu Sans": 8.0, "DejaVu Serif": 8.0, "STIXGeneral": 9.5, "DejaVu Sans Mono": 7.5}
"""The fonts that ship with matplotlib, in points that look alike."""


@dataclass(frozen=True, slots=True)
class Style:
    """`outside` and `inside` are backgrounds, `ink` texts and lines; `size` of text in points.

    `bar_width` is the share of a category that its bars take; `turned` where a pie begins.
    """

    palette: tuple[str, ...]
    outside: str
    inside: str
    ink: str
    font: str
    size: float
    legend: Literal["right", "above", "below"]
    grid: Literal["-", "--", ":"]
    framed: bool
    bold: bool
    left_title: bool
    named_axes: bool
    bar_width: float
    edged: bool
    dashed: bool
    labels_at_slices: bool
    turned: int


def style_of(seed: int) -> Style:
    """The style that a seed draws."""
    rng = random.Random(seed)
    dark = rng.random() < 0.15
    outside, inside = _DARK if dark else rng.choice(_LIGHT)
    palette = list(rng.choice(_PALETTES))
    rng.shuffle(palette)
    font = rng.choice(tuple(_SIZES))
    return Style(
        palette=tuple(map(_lighter, palette) if dark else palette),
        outside=outside,
        inside=inside,
        ink="#e6e6e6" if dark else rng.choice(("#000000", "#333333", "#1f2a44")),
        font=font,
        size=_SIZES[font],
        legend=rng.choice(("right", "above", "below")),
        grid=rng.choice(("-", "--", ":")),
        framed=rng.random() < 0.4,
        bold=rng.random() < 0.4,
        left_title=rng.random() < 0.4,
        named_axes=rng.random() < 0.5,
        bar_width=rng.uniform(0.66, 0.86),
        edged=rng.random() < 0.3,
        dashed=rng.random() < 0.3,
        labels_at_slices=rng.random() < 0.6,
        turned=rng.randrange(360),
    )


def ink_on(colour: str) -> str:
    """Black or white, whichever can be read on the colour."""
    red, green, blue = _channels(colour)
    return "#000000" if 0.299 * red + 0.587 * green + 0.114 * blue > 127 else "#ffffff"


def _lighter(colour: str) -> str:
    """Half-way to white, for dark backgrounds."""
    return "#" + "".join(f"{(255 + channel) // 2:02x}" for channel in _channels(colour))


def _channels(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
