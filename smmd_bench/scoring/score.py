"""From completions to scored examples: one row an example, one column a fact about it.

The scored frame (`scores.parquet`) has

uid         the example
answer      float64, the value of the target; NaN where the target holds no number
parsed      float64, the value that the completion gives; NaN where it gives none
valid       bool, the completion gives a value
exact       bool, the two values are equal, as fractions
text_match  bool, completion and target are the same text, see `texts_match`
error       float64, |parsed - answer|, computed on fractions; NaN where one of them is missing
truncated   bool, the completion was cut off (only where the finish reason is known)
category    the scale-error category, see `categories`

and then what the task's own `annotate` says of it, and the attributes of the example, such as the
number of operations.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ..contracts import Example, Task, plain_text
from ..contracts.texts import readable_text, remove_reasoning_tags
from ..errors import UserError, quoted, reason_of
from .categories import CATEGORIES, category
from .decoding_rules import RULES, columns_of

if TYPE_CHECKING:
    import pandas as pd

VERSION = 5
"""Raise it when a scored frame would come out differently; part of the measure address."""

COMPLETION_COLUMNS = (
    "uid", "prompt", "target", "completion", "finish_reason", "completion_tokens", "prompt_tokens",
    "image",
)  # fmt: skip
"""The columns of `completions.parquet`; every other column is an attribute of the example.

`image` is the path of the example's first picture; text tasks do not have it.
"""

SCORE_COLUMNS = (
    "uid", "answer", "parsed", "valid", "exact", "text_match", "error", "truncated", "category",
)  # fmt: skip
"""The columns of `scores.parquet`; every other column is an attribute of the example."""

NUMERIC_COLUMNS = frozenset({"answer", "parsed", "valid", "exact", "error", "category"})
"""The columns that say nothing if the answers of a task are not numbers."""


def completions_frame(
    examples: Sequence[Example], columns: Mapping[str, Sequence[Any]]
) -> pd.DataFrame:
    """A frame of completions: uid, prompt and target, these columns, the examples' attributes.
    Raises UserError where an attribute has the name of a column."""
    import pandas as pd

    frame: dict[str, Sequence[Any]] = {}
    for name in ("uid", "prompt", "target"):
        frame[name] = [getattr(example, name) for example in examples]
    frame |= columns
    names = dict.fromkeys(name for example in examples for name in example.attributes)
    clashing = sorted(names.keys() & frame.keys())
    if clashing:
        raise UserError(
            f"The attribute '{clashing[0]}' is a column of completions: rename it in the task."
        )
    for name in names:
        frame[name] = [example.attributes.get(name) for example in examples]
    return pd.DataFrame(frame)


def reads_numbers(task: Task) -> bool:
    """Whether a metric of the task looks at a number; none of summaries does."""
    return any(
        NUMERIC_COLUMNS & {*metric.columns, metric.subset} for metric in task.metrics()
    )


def score_frame(task: Task, completions: pd.DataFrame) -> pd.DataFrame:
    """The scored frame of a frame of completions, in the same order. It has at least uid, target
    and completion; others than `COMPLETION_COLUMNS` are attributes."""
    import pandas as pd

    attributes = [c for c in completions.columns if c not in COMPLETION_COLUMNS]
    targets = completions["target"].astype(str).tolist()
    answers = [value_of(task, target) for target in targets]
    texts = completions["completion"].astype(str).tolist()
    scores, notes = _scores(task, texts, targets, answers)
    columns = {*SCORE_COLUMNS, *columns_of(RULES)}
    clashing = columns & {*attributes, *notes} | {*attributes} & {*notes}
    if clashing:
        raise UserError(
            f"The attribute {', '.join(sorted(clashing))} of task {task.name} has the name of a "
            "column of the scores: give it another name."
        )

    scores["uid"] = completions["uid"].to_numpy()
    if "finish_reason" in completions:
        scores["truncated"] = (completions["finish_reason"] == "length").to_numpy(bool)

    # The columns of all tasks come first, whatever a task adds.
    ordered = {name: scores[name] for name in SCORE_COLUMNS if name in scores}
    frame = pd.DataFrame({**ordered, **notes})
    for name in attributes:
        frame[name] = completions[name].to_numpy()
    return frame


def score(
    task: str | Task,
    completions: Sequence[str],
    references: Sequence[str | int | float | Fraction],
    attributes: Mapping[str, Sequence[Any]] | None = None,
    *,
    keep_reasoning: bool = False,
) -> pd.DataFrame:
    """Score completions against references by a task's parser and metrics.

    `task` is a spec such as `gsm8k`, or a task. A reference is a number or a target text; for a
    task without numeric answers any text. Reasoning in tags, such as `<think>…</think>`, is no
    answer; with `keep_reasoning` it is a part of it. The frame is that of `score_frame`, with the
    texts; `.attrs["metrics"]` holds, by metric name, its value, low, high (the 95 % interval) and
    n.

    Raises UserError for no completions, other lengths, and what is no text or number.
    """
    import pandas as pd

    from ..plugin_system.registry import load_task
    from .statistics import metric_values

    if isinstance(task, str):
        task = load_task(task)
    number = len(completions)
    if number != len(references) or number == 0:
        raise UserError(
            f"{number} completions and {len(references)} references were given: "
            "give at least one completion, and one reference per completion."
        )
    for at, text in enumerate(completions):
        if not isinstance(text, str):
            raise UserError(
                f"Completion {at} ({str(text)[:80]}) is not text: give a string."
            )
    answers = [
        _reference(task, reference, at) for at, reference in enumerate(references)
    ]
    texts = {"completion": list(completions), "reference": [str(r) for r in references]}
    answered = texts["completion"]
    if keep_reasoning:
        answered = [remove_reasoning_tags(text) for text in answered]
    scores, notes = _scores(task, answered, texts["reference"], answers)
    columns: dict[str, Any] = {**texts, **scores, **notes}
    for name, values in (attributes or {}).items():
        if name in columns or len(values) != number:
            raise UserError(
                f"The attribute '{name}' has the name of a column of the scores, or not one value "
                f"per completion ({len(values)} for {number})."
            )
        columns[name] = list(values)
    frame = pd.DataFrame(columns)
    frame.attrs["metrics"] = metric_values(task, frame)
    return frame


def _scores(
    task: Task,
    texts: Sequence[str],
    targets: Sequence[str],
    answers: Sequence[Fraction | None],
) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """The columns of the scores, and those of `task.annotate(completion, target)`, if any."""
    import pandas as pd

    values = [value_of(task, text) for text in texts]
    errors: list[Fraction | None] = []
    categories = []
    for value, answer in zip(values, answers, strict=True):
        if value is None or answer is None:
            errors.append(None)
            categories.append("invalid")
        else:
            # As fractions, in which large integers keep all of their digits.
            errors.append(abs(value - answer))
            categories.append(category(value, answer))
    scores = {
        "answer": _floats(answers),
        "parsed": _floats(values),
        "valid": [value is not None for value in values],
        "exact": [error == 0 for error in errors],
        "error": _floats(errors),
        "category": pd.Categorical(categories, categories=list(CATEGORIES)),
        "text_match": texts_match(texts, targets),
    }

    if not hasattr(task, "annotate"):
        return scores, {}
    pairs = zip(texts, targets, strict=True)
    rows = [task.annotate(*pair) for pair in pairs]

    # The first row says which columns there are: those of a correct answer were checked before.
    names = rows[0] if rows else {}
    annotations = {}
    for name in names:
        annotations[name] = [row[name] for row in rows]
    return scores, annotations


def texts_match(texts: Sequence[str], targets: Sequence[str]) -> list[bool]:
    """Whether each completion is the text of its target, as it stands or as `plain_text` reads it.

    Markers and reasoning are taken off completions alone. They stay where without them two targets
    would be one, or one would be empty: a target `[POSITIVE]` is that text and no other.
    """
    golds = {target: readable_text(target) for target in targets}
    plain = {gold: plain_text(gold) for gold in golds.values()}
    counts = Counter(plain.values())

    # By as much as nobody sees, too, two targets may differ.
    spelled = Counter(golds.values())
    matches = []
    for text, target in zip(texts, targets, strict=True):
        gold = golds[target]
        if spelled[gold] > 1 or not gold:
            matches.append(text.strip() == target.strip())
            continue
        literal = counts[plain[gold]] > 1 or not plain[gold]
        matches.append(
            gold == readable_text(text) or (not literal and gold == plain_text(text))
        )
    return matches


def value_of(task: Task, text: str) -> Fraction | None:
    """The number that a task reads in a text. Raises UserError where its `parse` raises."""
    try:
        answer = task.parse(text)
    except ValueError as error:
        raise UserError(
            f"{task.name}.parse raises {type(error).__name__} ({reason_of(error)}) for "
            f"{quoted(text)}: correct the task; `smmd-bench validate {task.name}` says more."
        ) from error
    return None if answer is None else answer.value


def _reference(
    task: Task, reference: str | int | float | Fraction, at: int
) -> Fraction | None:
    if isinstance(reference, str) and not reads_numbers(task):
        return None
    if isinstance(reference, str):
        value = value_of(task, reference)
    else:
        try:
            # By its text: the float 0.1 means 1/10, not the nearest binary fraction.
            value = Fraction(str(reference))
        except ValueError:  # None, NaN, infinity
            value = None
    if value is not None:
        return value
    raise UserError(
        f"Reference {at} ({str(reference)[:80]!r}) holds no number that the task {task.name} can "
        "read: give the text of a target, or a number."
    )


def _floats(values: Iterable[Fraction | None]) -> Any:
    import pandas as pd

    return pd.array([float_of(value) for value in values], dtype="float64")


def float_of(value: Fraction | None) -> float:
    """float64 of a fraction; infinite beyond float64, NaN for None."""
    if value is None:
        return math.nan
    try:
        return float(value)
    # An answer of 400 digits is wrong by an infinite error, and no crash.
    except OverflowError:
        return math.inf if value > 0 else -math.inf
