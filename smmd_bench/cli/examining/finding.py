"""What the doctor says of one thing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "note", "problem"]
"""ok: as it should be; note: it works, with a limit; problem: something will fail."""

LONGER = "try again; `smmd-bench doctor --full` waits longer"
"""The remedy for what was not imported in time."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. Whatever is not ok has a remedy."""

    name: str
    state: State
    text: str
    remedy: str | None = None
