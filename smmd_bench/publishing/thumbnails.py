"""Small copies of pictures, as data URIs for the page."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import UserError

if TYPE_CHECKING:
    from PIL.Image import Image

LARGEST = 200
"""Pixels of the longer side."""


def small_picture(path: object, largest: int = LARGEST) -> Image | None:
    """A copy of at most `largest` pixels a side; None if there is no picture, or it is broken."""
    from ..encoding.images import read_image

    if not isinstance(path, str):
        return None
    try:
        small = read_image(Path(path))
    except UserError:
        return None
    small.thumbnail((largest, largest))
    return small


def thumbnail(path: object) -> str | None:
    """The small picture as a WebP in a data URI; None if there is none."""
    if (small := small_picture(path)) is None:
        return None
    buffer = io.BytesIO()
    small.save(buffer, "WEBP", quality=75)
    return "data:image/webp;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
