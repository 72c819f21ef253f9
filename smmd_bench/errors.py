"""Errors whose message is meant for the user: what, where, and what to do about it; and the end of
a process, which tells its status."""

from __future__ import annotations

import atexit
import difflib
import errno
import os
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

_LONGEST = 200


class UserError(Exception):
    """A user's mistake; the command line prints the sentence and exits with status 2."""


class UnreachableError(UserError):
    """What is neither here nor to be fetched; `reason` says why, in a clause."""

    def __init__(self, problem: str, reason: str, remedy: str) -> None:
        super().__init__(f"{problem} ({reason}): {remedy}.")
        self.reason = reason


class CellSkippedError(Exception):
    """A loss that cannot apply to a model or task; the cell is listed as skipped."""


class ReportSkippedError(Exception):
    """A report that has nothing to show of a run, with the reason for the page."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)


def if_full(error: OSError, path: Path | str | None) -> UserError | None:
    """The error of a disk, or of a quota on it, that is full; None: the error is another one."""
    if error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return None
    return UserError(
        f"The disk is full while writing {path or 'a file'}: free some space and run the same "
        "command again; what is finished is kept."
    )


def reason_of(error: BaseException) -> str:
    """The first line of an error's message without its full stop; its type if it has none."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")


def quoted(value: object) -> str:
    """A value in an error, cut where it is long."""
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A clause that lists the nearest known names, or all of them where none is near."""
    names = sorted(known)
    plain = {name: name.casefold() for name in names}
    close = difflib.get_close_matches(word.casefold(), plain.values(), n=3, cutoff=0.5)
    nearest = [
        name for match in dict.fromkeys(close) for name in names if plain[name] == match
    ]
    if nearest:
        return f"did you mean {' or '.join(nearest)}?"
    return f"known: {', '.join(names)}" if names else "none is known"


def end_process(main: Callable[[], int]) -> NoReturn:
    """End this process with the status that `main` returns.

    Threads and `atexit` end as Python ends them. It would then unload its modules, which takes a
    second where torch is one.
    """
    status = main()
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    # Python says itself that a stream is full, and lets one be closed.
    with suppress(AttributeError, OSError):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    sys.exit(status)
