"""The manifest of a run folder, which may come from anywhere."""

from pathlib import Path
from typing import Any

from ..errors import UserError
from .files import DamagedError, read_json

FORMAT = 3
"""Of a run folder. Raise it when what is written there is read in another way."""
CONVERTER = "scripts/convert_run.py of commit c0df192"


def read_manifest(run: Path) -> dict[str, Any]:
    """What RUN/manifest.json says; empty where there is none. Raises UserError where it is damaged,
    or in the format of another version of this package."""
    file = run / "manifest.json"
    content = read_json(file) or {}
    if content and not {"format", "overhead"} & content.keys():
        raise UserError(f"{file} is not that of a run: choose another folder.")
    if content.get("format", FORMAT) != FORMAT:
        raise UserError(
            f"{run} is in the format {content.get('format')} of another version of smmd-bench, "
            f"and this one reads {FORMAT}: convert it with {CONVERTER}."
        )
    cells = content.get("cells", [])
    if not all(isinstance(c, dict) and {"address", "parts"} <= c.keys() for c in cells):
        raise DamagedError(file, "not the manifest of a run", "copy it again")
    return content
