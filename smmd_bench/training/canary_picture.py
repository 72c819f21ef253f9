"""The picture that a canary reads: drawn by arithmetic, so that it is the same everywhere."""

from __future__ import annotations

import hashlib
from pathlib import Path

from ..storage.addresses import cache_folder
from ..storage.files import atomic

SIZE = 112
"""Pixels a side."""


def canary_picture() -> Path:
    """The picture's file in the cache folder, written there if it is not.

    Rings, squares and a ramp, one a channel: something to see for patches of every size.
    """
    import numpy as np
    from PIL import Image

    y, x = np.mgrid[:SIZE, :SIZE]
    rings = (x * x + y * y) // 24 % 256
    squares = (x // 14 + y // 14) % 2 * 200 + 20
    ramp = (2 * x + y) * 255 // (3 * SIZE)
    pixels = np.stack([rings, squares, ramp], axis=-1).astype(np.uint8)  # [SIZE, SIZE, 3]
    digest = hashlib.blake2b(pixels.tobytes(), digest_size=6).hexdigest()
    file = cache_folder() / "canary" / f"{digest}.png"
    if not file.exists():
        with atomic(file) as temporary:
            Image.fromarray(pixels).save(temporary, format="png")
    return file
