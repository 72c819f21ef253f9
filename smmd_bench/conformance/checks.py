"""A check and what came of it."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..errors import CellSkippedError, UserError

State = Literal["passed", "failed", "unchecked"]


class ViolationError(Exception):
    """A plugin does not do what its contract says; the message is what is shown."""


class UncheckedError(Exception):
    """A check that cannot be made here, and why."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What came of one check: `detail` says what was looked at, what is wrong, or why it could
    not be checked."""

    check: str
    state: State
    detail: str


def checked(check: str, function: Callable[[], str]) -> Finding:
    """Run a check, which returns what it looked at.

    A UserError or a loss that cannot apply is no violation: the check could not be made. Any other
    exception of the plugin is one, shown with the line that raised it.
    """
    try:
        return Finding(check, "passed", function())
    except ViolationError as error:
        return Finding(check, "failed", str(error))
    except (UncheckedError, UserError, CellSkippedError) as error:
        return Finding(check, "unchecked", str(error))
    except Exception as error:
        return Finding(check, "failed", say(error))


def require(holds: bool, otherwise: str) -> None:
    """Raise ViolationError with the sentence `otherwise` where something does not hold."""
    if not holds:
        raise ViolationError(otherwise)


def say(error: BaseException) -> str:
    """An exception as one line, with the file and line that raised it."""
    what = (str(error).strip() or "without a message").splitlines()[0]
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {what}{where}"
