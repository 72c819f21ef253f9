"""The manifest of a run folder, which may come from anywhere."""

from pathlib import Path
from typing import Any

from .addresses import require_inside
from .files import read_json
from .shapes import require_shape


def read_manifest(run: Path) -> dict[str, Any]:
    """What RUN/manifest.json says; empty where there is none.

    Raises UserError where it is damaged, or names a cell whose folder would be elsewhere.
    """
    content = read_json(run / "manifest.json") or {}
    require_shape(content, run / "manifest.json")
    for cell in content.get("cells") or ():
        require_inside(cell, run / "manifest.json")
    return content
