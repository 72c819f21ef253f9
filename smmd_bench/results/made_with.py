"""What cells were made with: versions of libraries and of the training code, kind of device."""

from __future__ import annotations

from collections.abc import Iterable

from ..storage.current import CurrentCell
from ..storage.files import parquet_made_with

_ONE_PROCESS = {"processes": "1", "strategy": "ddp"}
"""What a receipt leaves out."""


def made_with(cell: CurrentCell) -> dict[str, str]:
    """By `torch in training`, `device in decoding`, ...; of completions made elsewhere nothing is
    known, and the untuned base is not trained."""
    receipt = {} if cell.is_base or cell.home is None else cell.home.receipt or {}
    training = receipt.get("made_with")
    stages = {
        "training": {**_ONE_PROCESS, **training} if training else {},
        "decoding": parquet_made_with(cell.folder / "completions.parquet"),
    }
    return {f"{name} in {stage}": v for stage, known in stages.items() for name, v in known.items()}


def differences(cells: Iterable[CurrentCell]) -> dict[str, list[str]]:
    """What the cells were not all made with alike, and the values that they have, in order."""
    found: dict[str, dict[str, None]] = {}
    for cell in cells:
        for name, value in made_with(cell).items():
            found.setdefault(name, {})[value] = None
    return {name: list(values) for name, values in found.items() if len(values) > 1}
