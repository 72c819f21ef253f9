"""What the doctor says about one thing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "note", "problem"]
"""ok: as it should be; note: it works, with a limit; problem: something will fail."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that the doctor looked at. It has a remedy unless it is ok."""

    name: str
    state: State
    text: str
    remedy: str | None = None
