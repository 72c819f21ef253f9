"""The colours of a figure on dark paper: paper becomes paper, and what is drawn stays seen."""

from __future__ import annotations

import colorsys

PAPER, INK = "#14171b", "#e4e8ec"
"""`--paper` and `--ink` of `web/page.css` in the dark."""
CONTRAST = 4.5
"""WCAG's level AA of text, which lines and markers then have too."""
_GREY, _PALE = 0.12, 0.9


def dark_colour(colour: str) -> str:
    """The counterpart of `#rrggbb` on dark paper.

    Greys and pale tints change places: white is paper and black is ink. Other colours keep their
    hue, and are as much lighter as the contrast needs.
    """
    hue, light, saturation = colorsys.rgb_to_hls(*_channels(colour))
    if saturation < _GREY or light > _PALE or max(_channels(colour)) < _GREY:
        paper, ink = _channels(PAPER), _channels(INK)
        if saturation >= _GREY and light > _PALE:
            return _spelled(colorsys.hls_to_rgb(hue, 1.05 - light, min(saturation, 0.4)))
        return _spelled([p + (1 - light) * (i - p) for p, i in zip(paper, ink, strict=True)])
    while (
        contrast(found := _spelled(colorsys.hls_to_rgb(hue, light, saturation)), PAPER) < CONTRAST
    ):
        light += 0.01
    return found


def contrast(one: str, other: str) -> float:
    """WCAG's contrast of two colours, from 1 to 21."""
    low, high = sorted(map(_luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in _channels(colour)
    ]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def _channels(colour: str) -> tuple[float, float, float]:
    red, green, blue = bytes.fromhex(colour.removeprefix("#"))
    return red / 255, green / 255, blue / 255


def _spelled(channels: tuple[float, float, float] | list[float]) -> str:
    return "#" + bytes(round(255 * min(1.0, c)) for c in channels).hex()
