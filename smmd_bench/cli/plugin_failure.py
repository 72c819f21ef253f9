"""An error of somebody's own plugin file, as a sentence that names its line."""

from __future__ import annotations

import traceback
from pathlib import Path

from ..errors import reason_of
from ..plugin_system.registry import plugin_files


def describe_plugin_failure(error: BaseException) -> str | None:
    """Where a file given by `--plugin` failed, or ended the process; None: no such file did."""
    files = {str(file.resolve()): file for file in plugin_files()}
    frames = traceback.extract_tb(error.__traceback__)
    frame = next((f for f in reversed(frames) if str(Path(f.filename).resolve()) in files), None)
    if frame is None:
        return None
    what = f"{type(error).__name__}: {reason_of(error)}"
    return (
        f"The plugin {files[str(Path(frame.filename).resolve())]} failed in line {frame.lineno}, "
        f"in {frame.name} ({what}): correct it; `smmd-bench validate` checks a plugin alone."
    )
