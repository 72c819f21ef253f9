"""What a task gives, checked where it is taken: a task from outside may return anything."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, cast

from ..contracts import Answer, Example, Metric, Split, Task
from ..errors import UserError, quoted, reason_of
from ..storage.files import has_lone_surrogate
from .parameters import canonical


def take_examples(
    task: Task, split: Split, seed: int, limit: int | None = None
) -> Sequence[Example]:
    """`task.examples`. Raises UserError for what is not a sequence of examples made of text."""
    method = f"examples({split!r})"
    expected = "a list of Example, with texts and an Answer or None"
    try:
        examples: Any = task.examples(split, seed, limit)
    except ValueError as error:
        # The usual error of a date or number that cannot be read in the data.
        raise UserError(
            f"{task.name}.{method} raises {type(error).__name__} ({reason_of(error)}): correct the "
            f"task or its data; `smmd-bench validate {task.name}` says more."
        ) from error

    if not isinstance(examples, Sequence):
        raise _refuse(task, method, examples, expected)

    for example in examples:
        if not _is_complete(example):
            raise _refuse(task, method, example, expected)

        # No tokenizer takes half a surrogate pair, and no file in UTF-8 holds one.
        if has_lone_surrogate(f"{example.uid}{example.prompt}{example.target}"):
            raise UserError(
                f"{task.name}, {quoted(example.uid)}: its prompt or target holds half a surrogate "
                "pair, which is no letter: correct the text in its data, or in the task's prompt."
            )
    return cast(Sequence[Example], examples)


def _is_complete(example: Any) -> bool:
    if not isinstance(example, Example):
        return False
    texts = (example.uid, example.prompt, example.target)
    are_texts = all(type(text) is str for text in texts)
    return are_texts and isinstance(example.answer, Answer | None)


def take_identity(task: Task, split: Split, seed: int) -> dict[str, Any]:
    """`task.identity`. Raises UserError for what is not a mapping that JSON can hold."""
    identity = task.identity(split, seed)
    try:
        content = dict(identity)
        json.dumps(content)  # addresses are digests of it
    except (TypeError, ValueError) as problem:
        expected = "a mapping of texts and numbers"
        raise _refuse(task, f"identity({split!r})", identity, expected) from problem
    return content


def label_of(task: Task) -> str:
    """What tables call a task: its spec, or its own `label`, as a task in a file has."""
    return str(getattr(task, "label", None) or canonical(task))


def notes_of(task: Task) -> Sequence[str]:
    """What people should know of a task's data before they train or score, as a file has it."""
    return getattr(task, "notes", ())


def reads_files(task: Task) -> bool:
    """Whether the rows of a task come from the files of data sets."""
    return bool(getattr(task, "sources", ()))


def require_seed(
    asked: Iterable[tuple[Task, Iterable[Split]]], seed: int, flag: str = "--data-seed"
) -> None:
    """Raise UserError for a seed other than 0 from which no split of any of these tasks follows."""
    if not seed:
        return
    for task, splits in asked:
        for split in splits:
            # Any other seed will do, and this one is never out of range.
            another = take_identity(task, split, seed ^ 1)
            if take_identity(task, split, seed) != another:
                return
    raise UserError(
        f"{flag} {seed} changes none of the examples that are asked for: leave it out."
    )


def require_metrics(task: Task) -> None:
    """Raise UserError unless `task.metrics` gives at least one metric, and nothing else."""
    metrics: Any = task.metrics()
    is_list = isinstance(metrics, Sequence) and bool(metrics)
    # A class has the attributes of the contract, too; it was not made.
    if not is_list or any(
        isinstance(m, type) or not isinstance(m, Metric) for m in metrics
    ):
        raise _refuse(task, "metrics()", metrics, "a list of at least one metric")


def _refuse(task: Task, method: str, value: object, expected: str) -> UserError:
    return UserError(
        f"{task.name}.{method} gives {quoted(value)}, and {expected} is expected: correct the "
        f"task; `smmd-bench validate {task.name}` says more."
    )
