"""What we add to lm-eval's models: how many prompts they had to cut, and our progress."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Any

from ..contracts import Progress


class CountsTruncated:
    """Put before a model class of lm-eval's: keeps the prompts that do not fit its context.

    lm-eval cuts those on the left, through the description and the first shots, with no more than a
    line in its log. `room` is how many tokens of a prompt and its continuation fit.
    """

    truncated: set[str]
    room: int

    def _loglikelihood_tokens(self, requests: Sequence[Any], *more: Any, **named: Any) -> Any:
        for texts, context, continuation in requests:
            if texts is not None and len(context) + len(continuation) > self.room:
                self.truncated.add(texts[0])
        return super()._loglikelihood_tokens(requests, *more, **named)  # type: ignore[misc]

    def generate_until(self, requests: Sequence[Any], *more: Any, **named: Any) -> Any:
        """Completions, as lm-eval has them."""
        model: Any = self
        for request in requests:
            text, settings = request.args
            new = int(settings.get("max_gen_toks", model.max_gen_toks))
            if len(model.tok_encode(text)) + new > model.max_length:
                self.truncated.add(text)
        return super().generate_until(requests, *more, **named)  # type: ignore[misc]


class _Bar:
    """As much of `tqdm` as lm-eval uses."""

    def __init__(self, report: Callable[[int, int], None], items: Iterable[Any] | None, total: int):
        self.report, self.items, self.total, self.done = report, items, total, 0

    def update(self, n: int = 1) -> None:
        self.done += n
        self.report(self.done, self.total)

    def __iter__(self) -> Iterator[Any]:
        for item in self.items or ():
            yield item
            self.update()

    def close(self) -> None:
        """Nothing stays open."""


@contextmanager
def progress_bars(modules: Iterable[ModuleType], progress: Progress, what: str) -> Iterator[None]:
    """While it lasts, the bars of lm-eval's modules report to `progress`."""

    def bar(items: Any = None, *, total: int | None = None, **_: Any) -> _Bar:
        size = total if total is not None else len(items)
        return _Bar(lambda done, of: progress(what, done, of), items, size)

    with ExitStack() as stack:
        for module in modules:
            if hasattr(module, "tqdm"):
                stack.enter_context(replaced(module, "tqdm", bar))
        yield


@contextmanager
def replaced(module: ModuleType, name: str, value: Any) -> Iterator[None]:
    """While it lasts, a module has another value by that name."""
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)
