"""The style of a synthetic chart; rectangles, lines, slices and texts in pixels, in that style.

matplotlib (Agg) draws them without its axes: ticks take most of the time of a small chart.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle, Wedge
from matplotlib.text import Text
from matplotlib.transforms import IdentityTransform
from PIL import Image

from smmd_bench.storage.files import atomic

Pair = tuple[float, float]
SIZE, SMALL = (448, 336), (308, 224)
"""Width and height of a picture, and of a plain one, in pixels."""
_DPI = 100
_PALETTES = (
    ("#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#b07aa1", "#9c755f"),
    ("#1b9e77", "#d95f02", "#7570b3", "#e7298a", "#66a61e", "#e6ab02"),
    ("#003f5c", "#ff6361", "#ffa600", "#58508d", "#bc5090", "#2f9e8f"),
    ("#264653", "#e9c46a", "#e76f51", "#2a9d8f", "#8ab17d", "#b56576"),
    ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7"),
)
# Outside and inside of the axes; often the same.
_LIGHT = (("#ffffff", "#ffffff"), ("#ffffff", "#eef2f5"), ("#faf6ee", "#faf6ee"))
_DARK = ("#22272e", "#2d333b")
_SIZES = {
    "DejaVu Sans": 8.0,
    "DejaVu Serif": 8.0,
    "STIXGeneral": 9.5,
    "DejaVu Sans Mono": 7.5,
}
"""The fonts that ship with matplotlib, in points that look alike."""


class Style:
    """How a chart looks: all of it is drawn from a seed, and nothing changes what it shows.

    `outside` and `inside` are backgrounds, `ink` texts and lines; `size` of text in points.
    `bar_width` is the share of a category that its bars take; `turned` where a pie begins.
    """

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)

        # Every draw comes in this order: the order is the data.
        dark = rng.random() < 0.15
        self.outside, self.inside = _DARK if dark else rng.choice(_LIGHT)
        palette = list(rng.choice(_PALETTES))
        rng.shuffle(palette)
        if dark:
            palette = [_lighten(colour) for colour in palette]
        self.palette = palette

        self.font = rng.choice(tuple(_SIZES))
        self.size = _SIZES[self.font]
        self.ink = "#e6e6e6" if dark else rng.choice(("#000000", "#333333", "#1f2a44"))
        self.legend = rng.choice(("right", "above", "below"))
        self.grid = rng.choice(("-", "--", ":"))
        self.framed = rng.random() < 0.4
        self.weight = "bold" if rng.random() < 0.4 else "normal"
        self.left_title = rng.random() < 0.4
        self.named_axes = rng.random() < 0.5
        self.bar_width = rng.uniform(0.66, 0.86)
        self.edged = rng.random() < 0.3
        self.dashed = rng.random() < 0.3
        self.labels_at_slices = rng.random() < 0.6
        self.turned = rng.randrange(360)


class Canvas:
    """A picture; x goes to the right, y upwards."""

    def __init__(self, style: Style, size: tuple[int, int] = SIZE) -> None:
        self.style = style
        self.width, self.height = size
        inches = self.width / _DPI, self.height / _DPI
        # Not by pyplot, which would keep every figure open and is not safe in threads.
        self.figure = Figure(inches, _DPI, facecolor=style.outside)
        self.agg = FigureCanvasAgg(self.figure)
        self.pixels = IdentityTransform()

    def rectangle(
        self,
        corner: Pair,
        size: Pair,
        colour: str,
        *,
        edge: str = "",
        behind: bool = False,
    ) -> None:
        """A filled rectangle from its lower left corner, with a line around it where asked for.

        behind: beneath everything that is drawn after it.
        """
        rectangle = Rectangle(
            corner,
            *size,
            facecolor=colour,
            edgecolor=edge or "none",
            linewidth=0.7 if edge else 0.0,
        )
        self._add(rectangle, 0 if behind else 1)

    def slice(self, centre: Pair, radius: float, angles: Pair, colour: str) -> None:
        """A slice of a pie between two angles in degrees, counted anticlockwise from the right."""
        # An edge in the colour of the background parts neighbours of like colours.
        edge = self.style.outside
        wedge = Wedge(
            centre, radius, *angles, facecolor=colour, edgecolor=edge, linewidth=1.2
        )
        self._add(wedge, 1)

    def line(
        self, points: Sequence[Pair], colour: str, *, above: bool = False, **more: Any
    ) -> None:
        """A line through points, `above` bars and slices or beneath them; `more`: of Line2D."""
        x, y = zip(*points, strict=True)
        line = Line2D(
            x, y, color=colour, markersize=4.5, solid_joinstyle="round", **more
        )
        self._add(line, 2 if above else 0)

    def text(
        self, at: Pair, text: str, *, larger: float = 0.0, behind: str = "", **more: Any
    ) -> None:
        """A centred text, `behind` it the colour of a box that hides lines; `more`: of Text."""
        settings: dict[str, Any] = {
            "ha": "center",
            "va": "center_baseline",
            "color": self.style.ink,
            "fontfamily": self.style.font,
            "fontsize": self.style.size + larger,
            # Neither a user's settings nor a dollar sign may change a picture.
            "usetex": False,
            "parse_math": False,
            **more,
        }

        # A turned name ends at its tick, not in the middle beneath it.
        settings["rotation_mode"] = "anchor" if settings["ha"] == "right" else "default"
        if behind:
            settings["bbox"] = {
                "pad": 0.8,
                "facecolor": behind,
                "edgecolor": "none",
                "alpha": 0.8,
            }
        self._add(Text(*at, text, **settings), 3)

    def save(self, path: Path) -> None:
        self.agg.draw()
        size = self.width, self.height
        pixels = Image.frombuffer("RGBA", size, self.agg.buffer_rgba())
        # Several processes may draw one picture, and none must read half of it.
        with atomic(path) as part:
            # Compressed less than Pillow would: time to draw counts more than size.
            pixels.convert("RGB").save(part, "png", compress_level=4)

    def _add(self, artist: Artist, order: int) -> None:
        # Without axes, coordinates are pixels from the lower left corner.
        artist.set_transform(self.pixels)
        artist.set_zorder(order)
        self.figure.add_artist(artist)


def ink_on(colour: str) -> str:
    """Black or white, whichever can be read on the colour."""
    red, green, blue = bytes.fromhex(colour[1:])
    # The weights of Rec. 601: green looks brightest, blue darkest.
    return "#000000" if 0.299 * red + 0.587 * green + 0.114 * blue > 127 else "#ffffff"


def _lighten(colour: str) -> str:
    """Half-way to white: the palettes are made for light backgrounds."""
    channels = bytes.fromhex(colour[1:])
    return "#" + bytes((255 + channel) // 2 for channel in channels).hex()
