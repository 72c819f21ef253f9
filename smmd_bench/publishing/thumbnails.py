"""Small copies of pictures, as data URIs for the page."""

from __future__ import annotations

import base64
import io
from pathlib import Path

from ..errors import UserError

LARGEST = 200
"""Pixels of the longer side."""


def thumbnail(path: object) -> str | None:
    """A JPEG of the picture as a data URI; None where there is none, or it cannot be read."""
    from ..vision.images import read_image

    if not isinstance(path, str):
        return None
    try:
        small = read_image(Path(path))
    except UserError:
        return None
    small.thumbnail((LARGEST, LARGEST))
    buffer = io.BytesIO()
    small.save(buffer, "JPEG", quality=80)
    return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
