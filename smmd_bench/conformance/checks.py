"""A check and what came of it. A check is a function whose docstring says what holds."""

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ..errors import CellSkippedError, UserError


class ViolationError(Exception):
    """A plugin does not do what its contract says; users see the message."""


class UncheckedError(Exception):
    """A check that is not possible here, and why."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What came of one check. `detail`: what holds, what is wrong, or why it was not possible."""

    check: str
    state: Literal["passed", "failed", "unchecked"]
    detail: str


def run_checks(
    checks: Mapping[str, Callable[..., None]], *subject: Any
) -> list[Finding]:
    """Run checks of a plugin; an exception that is not for users is a violation, too."""
    return [_run(name, check, *subject) for name, check in checks.items()]


def _run(name: str, check: Callable[..., None], *subject: Any) -> Finding:
    try:
        check(*subject)
    except ViolationError as error:
        return Finding(name, "failed", str(error))
    # Data or a library that is not here says nothing about the plugin.
    except (
        UncheckedError,
        UserError,
        CellSkippedError,
        ConnectionError,
        ImportError,
    ) as error:
        return Finding(name, "unchecked", str(error))
    except Exception as error:
        return Finding(name, "failed", _describe_crash(error))
    # A check's docstring opens with the sentence that it has shown to hold.
    sentence = (check.__doc__ or "").partition("\n")[0]
    return Finding(name, "passed", sentence.rstrip("."))


def _describe_crash(error: Exception) -> str:
    message = str(error).strip() or "without a message"
    # The innermost frame is the author's line, or the one next to it that it calls.
    frame = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{Path(frame.filename).name}, line {frame.lineno}"
    return f"{type(error).__name__}: {message.splitlines()[0]} ({place})"


def require(holds: Any, otherwise: str) -> None:
    """Raise ViolationError with the sentence `otherwise` unless something holds."""
    if not holds:
        raise ViolationError(otherwise)
