"""A check and what came of it."""

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeVar

from ..errors import CellSkippedError, UserError

Check = TypeVar("Check", bound=Callable[[Any], str])


class ViolationError(Exception):
    """A plugin does not do what its contract says; users see the message."""


class UncheckedError(Exception):
    """A check that is not possible here, and why."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What came of one check. `detail`: what it looked at, what is wrong, or why it was not
    possible."""

    check: str
    state: Literal["passed", "failed", "unchecked"]
    detail: str


class Checks(dict[str, Callable[[Any], str]]):
    """Checks by name, in the order of their definition. Each returns what it looked at."""

    def add(self, name: str) -> Callable[[Check], Check]:
        """A decorator that adds a check."""

        def keep(check: Check) -> Check:
            self[name] = check
            return check

        return keep

    def run(self, subject: Any) -> list[Finding]:
        """Run every check of a plugin, or of what it is tried with.

        After a UserError or a loss that cannot apply the check was not possible. Any other
        exception of the plugin is a violation, shown with the line that raised it.
        """
        return [_run(name, check, subject) for name, check in self.items()]


def _run(name: str, check: Callable[[Any], str], subject: Any) -> Finding:
    try:
        return Finding(name, "passed", check(subject))
    except ViolationError as error:
        return Finding(name, "failed", str(error))
    except (UncheckedError, UserError, CellSkippedError) as error:
        return Finding(name, "unchecked", str(error))
    except Exception as error:
        return Finding(name, "failed", say(error))


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
