"""lm-eval's progress bars, which report to ours."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Any
from unittest.mock import patch

from tqdm import tqdm

from ..contracts import Progress


@contextmanager
def progress_bars(modules: Iterable[ModuleType], progress: Progress, what: str) -> Iterator[None]:
    """While it lasts, the bars of lm-eval's modules report to `progress`."""

    class Bar(tqdm):  # type: ignore[misc]
        monitor_interval = 0  # no thread

        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named, file=io.StringIO(), mininterval=0)

        def display(self, *_: Any, **__: Any) -> None:
            if self.total:
                progress(what, self.n, self.total)

    with ExitStack() as stack:
        for module in modules:
            if hasattr(module, "tqdm"):
                stack.enter_context(patch.object(module, "tqdm", Bar))
        yield
