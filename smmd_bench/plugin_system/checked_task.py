"""What a task gives, checked where it is taken: a task from outside may return anything."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, cast

from ..contracts import Answer, Example, Metric, Split, Task
from ..errors import UserError, quoted, reason_of


def take_examples(
    task: Task, split: Split, seed: int, limit: int | None = None
) -> Sequence[Example]:
    """`task.examples`. Raises UserError for what is not a sequence of examples made of text."""
    examples: Any = task.examples(split, seed, limit)
    method = f"examples({split!r})"
    if not isinstance(examples, Sequence) or isinstance(examples, (str, bytes)):
        raise _refuse(task, method, examples, "a list of Example")
    for example in examples:
        if not isinstance(example, Example):
            raise _refuse(task, method, example, "a list of Example")
        for name in ("uid", "prompt", "target"):
            if not isinstance(value := getattr(example, name), str):
                raise _refuse(task, method, value, f"a text as {name}")
        if not isinstance(example.answer, Answer | None):
            raise _refuse(task, method, example.answer, "an Answer or None")
    return cast(Sequence[Example], examples)


def take_identity(task: Task, split: Split, seed: int) -> dict[str, Any]:
    """`task.identity`. Raises UserError for what is not a mapping that JSON can hold."""
    identity = task.identity(split, seed)
    try:
        content = dict(identity)
        json.dumps(content)
    except (TypeError, ValueError) as problem:
        expected = "a mapping of texts and numbers"
        raise _refuse(task, f"identity({split!r})", identity, expected) from problem
    return content


def reads_files(task: Task) -> bool:
    """Whether the rows of a task come from the files of data sets."""
    return bool(getattr(task, "sources", ()))


def require_seed(
    asked: Iterable[tuple[Task, Iterable[Split]]], seed: int, flag: str = "--data-seed"
) -> None:
    """Raise UserError for a seed other than 0 from which no split of any of these tasks follows."""
    for task, split in ((task, split) for task, splits in asked for split in splits):
        if not seed or take_identity(task, split, seed) != take_identity(task, split, seed ^ 1):
            return
    raise UserError(f"{flag} {seed} changes none of the examples that are asked for: leave it out.")


def require_metrics(task: Task) -> None:
    """Raise UserError unless `task.metrics` gives at least one metric, and nothing else."""
    try:
        metrics: Any = task.metrics()
    except (Exception, SystemExit) as problem:
        said = f"{type(problem).__name__}: {reason_of(problem)}"
        raise UserError(f"{task.name}.metrics() fails ({said}): correct the task.") from problem
    if not isinstance(metrics, Sequence) or isinstance(metrics, str) or not metrics:
        raise _refuse(task, "metrics()", metrics, "at least one metric")
    for metric in metrics:
        if isinstance(metric, type) or not isinstance(metric, Metric):
            raise _refuse(task, "metrics()", metric, "metrics only")


def _refuse(task: Task, method: str, value: object, expected: str) -> UserError:
    return UserError(
        f"{task.name}.{method} gives {quoted(value)}, and {expected} is expected: correct the "
        f"task; `smmd-bench validate {task.name}` says more."
    )
