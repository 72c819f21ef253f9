"""Files of a cell that the run can make again: what is not as written there is set aside."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from .files import DamagedError, read_own_json, set_aside
from .remembered import remembered
from .shapes import require_shape


class Weights(NamedTuple):
    """The weights that a cell tests: the epoch (0: untrained), and the digest of their files."""

    epoch: int
    digest: str


def keep_whole(content: dict[str, Any], file: Path) -> dict[str, Any] | None:
    """The content of a file that the run can make again; None: it is not what is written there,
    and the file is set aside."""
    try:
        require_shape(content, file)
    except DamagedError as error:
        set_aside(file, error)
        return None
    return content


@remembered
def read_receipt(file: Path) -> dict[str, Any] | None:
    """The content of a train.json without the canaries, which are most of it: those of 1,000 cells
    would not fit the memory."""
    content = read_own_json(file)
    if content is not None and (content := keep_whole(content, file)) is not None:
        content.pop("base", None)
        for epoch in content["epochs"]:
            epoch.pop("canary", None)
    return content


@remembered
def read_weights(file: Path) -> Weights | None:
    """Which weights are beside this canary.json."""
    found = read_own_json(file)
    found = found and keep_whole(found, file)
    return Weights(found["epoch"], found["weights"]) if found else None
