"""What cells were made with: versions of libraries and of the training code, kind of device."""

from __future__ import annotations

from collections.abc import Iterable

from ..storage.cell import StoredCell

_ONE_PROCESS = {"processes": "1", "strategy": "ddp"}
"""What a receipt leaves out."""


def made_with(cell: StoredCell) -> dict[str, str]:
    """By `torch in training`, `device in decoding`, ...; of completions made elsewhere nothing is
    known, and the untuned base is not trained."""
    training = None if cell.is_base else (cell.receipt or {}).get("made_with")
    stages = {
        "training": {**_ONE_PROCESS, **training} if training else {},
        "decoding": (cell.decoding or {}).get("made_with") or {},
    }
    return {f"{name} in {stage}": v for stage, known in stages.items() for name, v in known.items()}


def differences(cells: Iterable[StoredCell]) -> dict[str, list[str]]:
    """What the cells were not all made with alike, and the values that they have, in order."""
    found: dict[str, dict[str, None]] = {}
    for cell in cells:
        for name, value in made_with(cell).items():
            found.setdefault(name, {})[value] = None
    return {name: list(values) for name, values in found.items() if len(values) > 1}
