"""A check and what came of it. A check is a function whose docstring says what holds."""

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NoReturn

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


def run_checks(checks: Mapping[str, Callable[[Any], None]], subject: Any) -> list[Finding]:
    """Run checks of a plugin; an exception that is not for users is a violation, too."""
    return [_run(name, check, subject) for name, check in checks.items()]


def _run(name: str, check: Callable[[Any], None], subject: Any) -> Finding:
    try:
        check(subject)
    except ViolationError as error:
        return Finding(name, "failed", str(error))
    except (UncheckedError, UserError, CellSkippedError, ConnectionError, ImportError) as error:
        return Finding(name, "unchecked", str(error))
    except Exception as error:
        return Finding(name, "failed", say(error))
    return Finding(name, "passed", (check.__doc__ or "").partition("\n")[0].rstrip("."))


def fail(sentence: str) -> NoReturn:
    """Raise ViolationError."""
    raise ViolationError(sentence)


def require(holds: bool, otherwise: str) -> None:
    """Raise ViolationError with the sentence `otherwise` unless something holds."""
    if not holds:
        fail(otherwise)


def say(error: BaseException) -> str:
    """An exception as one line, with the file and line that raised it."""
    what = (str(error).strip() or "without a message").splitlines()[0]
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {what}{where}"
