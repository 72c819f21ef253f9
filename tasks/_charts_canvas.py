"""Rectangles, lines, slices and texts in pixels, drawn by matplotlib (Agg) without its axes.

matplotlib's ticks take most of the time of a small chart; here it only draws.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal

from ._charts_style import Style

Across = Literal["left", "center", "right"]
Up = Literal["bottom", "baseline", "center", "center_baseline", "top"]
WIDTH, HEIGHT = 448, 336
_DPI = 100
_SETTINGS = (
    "agg.",
    "figure.",
    "font.",
    "lines.",
    "markers.",
    "mathtext.",
    "patch.",
    "path.",
    "text.",
)


def own_settings() -> AbstractContextManager[None]:
    """matplotlib's defaults for what is drawn here, whatever the user has set."""
    from matplotlib import rc_context, rcParamsDefault

    return rc_context(
        {key: rcParamsDefault[key] for key in rcParamsDefault if key.startswith(_SETTINGS)}
    )


class Canvas:
    """A picture of 448 x 336 pixels; x goes to the right, y upwards."""

    def __init__(self, style: Style) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.transforms import IdentityTransform

        self.style = style
        size = (WIDTH / _DPI, HEIGHT / _DPI)
        self.figure = Figure(size, _DPI, facecolor=style.outside)
        self.agg = FigureCanvasAgg(self.figure)
        self.pixels = IdentityTransform()

    def background(
        self, corner: tuple[float, float], size: tuple[float, float], colour: str
    ) -> None:
        """A rectangle behind everything that is drawn after it."""
        from matplotlib.patches import Rectangle

        self._add(Rectangle(corner, *size, facecolor=colour, **_edge("")), 0)

    def rectangle(
        self, corner: tuple[float, float], size: tuple[float, float], colour: str, edge: str = ""
    ) -> None:
        """A filled rectangle from its lower left corner, with a line around it where asked for."""
        from matplotlib.patches import Rectangle

        self._add(Rectangle(corner, *size, facecolor=colour, **_edge(edge)), 1)

    def slice(
        self, centre: tuple[float, float], radius: float, angles: tuple[float, float], colour: str
    ) -> None:
        """A slice of a pie between two angles in degrees, counted anticlockwise from the right."""
        from matplotlib.patches import Wedge

        edge = _edge(self.style.outside) | {"linewidth": 1.2}
        self._add(Wedge(centre, radius, *angles, facecolor=colour, **edge), 1)

    def line(
        self,
        points: Sequence[tuple[float, float]],
        colour: str,
        *,
        width: float = 1.0,
        dashes: str = "-",
        alpha: float = 1.0,
        marker: str = "",
        above: bool = False,
    ) -> None:
        """A line through points; `above` bars and slices, or beneath them."""
        from matplotlib.lines import Line2D

        self._add(
            Line2D(
                *zip(*points, strict=True),
                color=colour,
                linewidth=width,
                linestyle=dashes,
                alpha=alpha,
                marker=marker or "None",
                markersize=4.5,
                solid_joinstyle="round",
            ),
            2 if above else 0,
        )

    def text(
        self,
        at: tuple[float, float],
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
        from matplotlib.text import Text

        box = {"pad": 0.8, "facecolor": behind, "edgecolor": "none", "alpha": 0.8}
        self._add(
            Text(
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
            ),
            3,
        )

    def save(self, path: Path) -> None:
        """Write PNG to `path`, which is whole or absent, whatever other processes do."""
        from PIL import Image

        self.agg.draw()
        pixels = Image.frombuffer("RGBA", (WIDTH, HEIGHT), self.agg.buffer_rgba())
        temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            pixels.convert("RGB").save(temporary, format="PNG", compress_level=4)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)

    def _add(self, artist: Any, order: int) -> None:
        artist.set_transform(self.pixels)
        artist.set_zorder(order)
        self.figure.add_artist(artist)


def _edge(colour: str) -> dict[str, Any]:
    return {"edgecolor": colour or "none", "linewidth": 0.7 if colour else 0.0}
