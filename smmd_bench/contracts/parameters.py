"""Parameters of a plugin, and their checks.

A plugin is a frozen dataclass; each field is a parameter. `parameter()` gives a field its help,
its public name (`lambda` is not a Python identifier) and a check. Values are read by the field's
annotation: `int`, `float`, `bool`, `str`, `Literal[...]`, `tuple[float, ...]` (spelled `1+2+3`),
`tuple[int, int]` (a range, spelled `1..2`), each also with `| None` (spelled `none`).
"""

import math
from collections.abc import Callable
from dataclasses import field
from typing import Any


def parameter(
    default: Any,
    help: str,
    *,
    name: str | None = None,
    check: Callable[[Any], str | None] | None = None,
    added_later: bool = False,
) -> Any:
    """A dataclass field that is a plugin parameter; `check` says what a wrong value must be. One
    that is `added_later`, to a plugin with results, is in no address at its default."""
    more = {"help": help, "name": name, "check": check, "added_later": added_later}
    return field(default=default, metadata=more)


def factor(default: float) -> Any:
    """The parameter `lambda` of a loss."""
    return parameter(
        default, "weight of the auxiliary", name="lambda", check=non_negative
    )


def positive(value: float) -> str | None:
    """Check: > 0."""
    return None if value > 0 and math.isfinite(value) else "must be > 0"


def non_negative(value: float) -> str | None:
    """Check: >= 0."""
    return None if value >= 0 and math.isfinite(value) else "must be >= 0"


def between(low: float, high: float) -> Callable[[float], str | None]:
    """A check: from low to high."""
    return lambda value: (
        None if low <= value <= high else f"must be from {low:,} to {high:,}"
    )


bandwidth = between(0.001, 1_000_000)
"""Check: the square is a normal number in float32."""
share = between(0, 1)
"""Check: from 0 to 1."""
