"""A check and what came of it."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Generic, Literal, NoReturn, TypeVar

from ..errors import CellSkippedError, UserError

Subject = TypeVar("Subject")


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


@dataclass(frozen=True)
class Checks(Generic[Subject]):
    """Checks by name, in the order of their definition. Each returns what it looked at."""

    functions: dict[str, Callable[[Subject], str]] = field(default_factory=dict)

    def add(self, name: str) -> Callable[[Callable[[Subject], str]], Callable[[Subject], str]]:
        """A decorator that adds a check."""

        def keep(function: Callable[[Subject], str]) -> Callable[[Subject], str]:
            self.functions[name] = function
            return function

        return keep

    def run(self, subject: Subject) -> list[Finding]:
        """Run every check."""
        return [checked(name, partial(one, subject)) for name, one in self.functions.items()]


def checked(check: str, function: Callable[[], str]) -> Finding:
    """Run a check, which returns what it looked at.

    After a UserError or a loss that cannot apply the check was not possible. Any other exception of
    the plugin is a violation, shown with the line that raised it.
    """
    try:
        return Finding(check, "passed", function())
    except ViolationError as error:
        return Finding(check, "failed", str(error))
    except (UncheckedError, UserError, CellSkippedError) as error:
        return Finding(check, "unchecked", str(error))
    except Exception as error:
        return Finding(check, "failed", say(error))


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
