"""Rectangles, lines, slices and texts in pixels, drawn by matplotlib (Agg) without its axes.

matplotlib's ticks take most of the time of a small chart; here it only draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle, Wedge
from matplotlib.text import Text
from matplotlib.transforms import IdentityTransform
from PIL import Image

from ._charts_style import Style
from ._picture_files import save_png

Across = Literal["left", "center", "right"]
Up = Literal["bottom", "baseline", "center", "center_baseline", "top"]
Pair = tuple[float, float]
WIDTH, HEIGHT = 448, 336
_DPI = 100


class Canvas:
    """A picture of 448 x 336 pixels; x goes to the right, y upwards."""

    def __init__(self, style: Style) -> None:
        self.style = style
        self.figure = Figure((WIDTH / _DPI, HEIGHT / _DPI), _DPI, facecolor=style.outside)
        self.agg = FigureCanvasAgg(self.figure)
        self.pixels = IdentityTransform()

    def rectangle(
        self, corner: Pair, size: Pair, colour: str, *, edge: str = "", behind: bool = False
    ) -> None:
        """A filled rectangle from its lower left corner, with a line around it where asked for.

        behind: beneath everything that is drawn after it.
        """
        line: dict[str, Any] = {"edgecolor": edge or "none", "linewidth": 0.7 if edge else 0.0}
        self._add(Rectangle(corner, *size, facecolor=colour, **line), 0 if behind else 1)

    def slice(self, centre: Pair, radius: float, angles: Pair, colour: str) -> None:
        """A slice of a pie between two angles in degrees, counted anticlockwise from the right."""
        line: dict[str, Any] = {"edgecolor": self.style.outside, "linewidth": 1.2}
        self._add(Wedge(centre, radius, *angles, facecolor=colour, **line), 1)

    def line(
        self,
        points: Sequence[Pair],
        colour: str,
        *,
        width: float = 1.0,
        dashes: str = "-",
        alpha: float = 1.0,
        marker: str = "None",
        above: bool = False,
    ) -> None:
        """A line through points; `above` bars and slices, or beneath them."""
        line = Line2D(
            *zip(*points, strict=True),
            color=colour,
            linewidth=width,
            linestyle=dashes,
            alpha=alpha,
            marker=marker,
            markersize=4.5,
            solid_joinstyle="round",
        )
        self._add(line, 2 if above else 0)

    def text(
        self,
        at: Pair,
        text: str,
        *,
        across: Across = "center",
        up: Up = "center_baseline",
        larger: float = 0.0,
        bold: bool = False,
        colour: str = "",
        turned: int = 0,
        behind: str = "",
    ) -> None:
        """A text at a point, `behind` it the colour of a box that hides lines."""
        box = {"pad": 0.8, "facecolor": behind, "edgecolor": "none", "alpha": 0.8}
        written = Text(
            *at,
            text,
            horizontalalignment=across,
            verticalalignment=up,
            rotation=turned,
            rotation_mode="anchor" if across == "right" else "default",
            fontfamily=self.style.font,
            fontsize=self.style.size + larger,
            fontweight="bold" if bold else "normal",
            color=colour or self.style.ink,
            usetex=False,
            parse_math=False,
            bbox=box if behind else None,
        )
        self._add(written, 3)

    def save(self, path: Path) -> None:
        """Write the picture as PNG."""
        self.agg.draw()
        pixels = Image.frombuffer("RGBA", (WIDTH, HEIGHT), self.agg.buffer_rgba())
        save_png(pixels.convert("RGB"), path, compress_level=4)

    def _add(self, artist: Artist, order: int) -> None:
        artist.set_transform(self.pixels)
        artist.set_zorder(order)
        self.figure.add_artist(artist)
