"""What `smmd-bench doctor` looks at, a file for each kind of thing."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Finding:
    """What the doctor says about one thing: ok, a limit, or that something will fail.

    A finding has a remedy unless it is ok.
    """

    name: str
    state: Literal["ok", "note", "problem"]
    text: str
    remedy: str | None = None
