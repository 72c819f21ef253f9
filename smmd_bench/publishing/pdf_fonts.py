"""Fonts of a PDF without the tables by which texts are laid out, which no reader of a PDF uses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

LAYOUT = ("GDEF", "GPOS", "GSUB")
"""Kerning, ligatures and their classes: a PDF names glyphs and places (ISO 32000-1, 9.9)."""


@contextmanager
def small_fonts() -> Iterator[None]:
    """Inside, matplotlib embeds fonts without `LAYOUT`, whose reading takes three quarters of the
    time of a font, and each PDF has one or more.

    matplotlib has no setting for it, so fontTools is told, where it still can be.
    """
    from fontTools.subset import Options

    options: Any = Options
    usual = getattr(options, "_drop_tables_default", None)
    if usual is None:
        yield
        return
    options._drop_tables_default = [*usual, *LAYOUT]
    try:
        yield
    finally:
        options._drop_tables_default = usual
