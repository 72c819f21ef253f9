"""Ctrl-C and SIGTERM: what is kept, and the command that goes on."""

import shlex
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager


class Terminated(KeyboardInterrupt):
    """SIGTERM: the machine is wanted back."""


class Interrupted(KeyboardInterrupt):
    """A long command was stopped; `kept` are sentences about what is on disk."""

    def __init__(self, kept: Sequence[str], *, terminated: bool) -> None:
        super().__init__()
        self.kept, self.terminated = tuple(kept), terminated


@contextmanager
def keeping(list_kept: Callable[[], Sequence[str]] = tuple) -> Iterator[None]:
    """Turn Ctrl-C and SIGTERM into `Interrupted` with what `list_kept()` then says.

    A second one has no effect meanwhile.
    """
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    except KeyboardInterrupt as error:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            kept = list_kept()
        finally:
            signal.signal(signal.SIGINT, interrupt)
        raise Interrupted(kept, terminated=isinstance(error, Terminated)) from None
    finally:
        signal.signal(signal.SIGTERM, before)


def _terminate(*_: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Terminated


def farewell(error: BaseException) -> tuple[str, int]:
    """What people read after Ctrl-C or SIGTERM, which click wraps in an error of its own; the exit
    status."""
    if isinstance(error.__cause__, KeyboardInterrupt):
        error = error.__cause__
    if not isinstance(error, Interrupted):
        return "Interrupted.", 128 + signal.SIGINT
    command = shlex.join(["smmd-bench", *sys.argv[1:]])
    how = "Terminated." if error.terminated else "Interrupted."
    number = signal.SIGTERM if error.terminated else signal.SIGINT
    return "\n".join([how, *error.kept, f"Continue with: {command}"]), 128 + number
