"""Ctrl-C: what is kept, and the command that goes on."""

import shlex
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager


class Interrupted(KeyboardInterrupt):
    """A long command was interrupted; `kept` are sentences about what is on disk."""

    def __init__(self, kept: Sequence[str]) -> None:
        super().__init__()
        self.kept = tuple(kept)


@contextmanager
def keeping(list_kept: Callable[[], Sequence[str]] = tuple) -> Iterator[None]:
    """Turn an interrupt into `Interrupted` with what `list_kept()` then says.

    A second Ctrl-C has no effect meanwhile.
    """
    try:
        yield
    except KeyboardInterrupt:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            kept = list_kept()
        finally:
            signal.signal(signal.SIGINT, before)
        raise Interrupted(kept) from None


def farewell(error: BaseException) -> str:
    """What people read after Ctrl-C, which click wraps in an error of its own."""
    if isinstance(error.__cause__, KeyboardInterrupt):
        error = error.__cause__
    if not isinstance(error, Interrupted):
        return "Interrupted."
    command = shlex.join(["smmd-bench", *sys.argv[1:]])
    return "\n".join(["Interrupted.", *error.kept, f"Continue with: {command}"])
