"""Which completion answers which example: by uid, prompt, position or in order.

What a row says of its example, its prompt and its target, is held against the example.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os.path import commonprefix
from typing import TYPE_CHECKING, Any, Literal

from ..contracts import Example, Task
from ..errors import UserError
from .predictions import Prediction, Predictions
from .score import completions_frame

if TYPE_CHECKING:
    import pandas as pd

By = Literal["uid", "position", "prompt", "order"]
_SAID: dict[By, str] = {
    "uid": "by uid",
    "position": "by id, as the position of the example in the split (from 0)",
    "prompt": "by prompt",
    "order": "without ids, matched in the order of the examples",
}
_ROLE = re.compile(r"\A\s*(?:assistant|model)\s*\n", re.IGNORECASE)
_MARKER = re.compile(r"<[^<>]+>|\[[A-Z]+\]")
"""Begin and pad tokens."""
_CHECK = "check --task, --split, --data-seed and --limit"


@dataclass(frozen=True)
class Matched:
    """The predictions of a file by the index of their example, and how they were matched.

    notes: what else people should know about it.
    """

    file: Predictions
    by: By
    found: Mapping[int, Prediction]
    notes: Sequence[str]

    def __str__(self) -> str:
        """One line for people: the format, and what was taken for the id."""
        file = self.file
        said = f"{file.path}: {file.form}, {len(self.found):,} completions {_SAID[self.by]}"
        return "; ".join([said, *self.notes])

    def frame(self, examples: Sequence[Example], chosen: Sequence[int]) -> pd.DataFrame:
        """The completions of the chosen examples; with finish reasons if the file has any."""
        found = [self.found[at] for at in chosen]
        columns: dict[str, list[Any]] = {"completion": [p.completion for p in found]}
        if any(prediction.finish_reason is not None for prediction in found):
            columns["finish_reason"] = [prediction.finish_reason for prediction in found]
        return completions_frame([examples[at] for at in chosen], columns)


def match(
    file: Predictions,
    task: Task,
    examples: Sequence[Example],
    scope: str,
    *,
    first: int | None = None,
    partial: bool = False,
) -> Matched:
    """Match the predictions of a file with the examples; `scope` names these in errors.

    first: so many examples are scored, and completions of others left out; None: all. Raises
    UserError for an id that is unknown or appears twice, a prompt or target that is not the
    example's, and, unless `partial`, for an example without a completion.
    """
    by, places = _find_places(file, examples, scope)
    asked, rows = len(examples) if first is None else min(first, len(examples)), len(file.rows)
    enough = rows == asked if first is None else asked <= rows <= len(examples)
    if by == "order" and not enough:
        raise UserError(
            f"{file.path} has {rows} rows for {scope}: without ids, rows are matched in order, so "
            "add a column uid, or give --limit if the rows answer the first examples."
        )
    found: dict[int, Prediction] = {}
    for at, prediction in zip(places, file.rows, strict=True):
        if at in found:
            raise UserError(
                f"{prediction.place}: the example {examples[at].uid} is already in "
                f"{found[at].place}: keep one of them."
            )
        found[at] = prediction
    _check_prompts(found, examples)
    _check_targets(found, task, examples)
    found = {at: prediction for at, prediction in found.items() if at < asked}
    missing = [at for at in range(asked) if at not in found]
    if missing and not partial:
        raise UserError(
            f"{file.path} has no completion for {len(missing):,} of {scope} (the first: "
            f"{examples[missing[0]].uid}): add them, or give --partial to score the others, or "
            "--limit to score the first ones."
        )
    return Matched(file, by, *_without_prompts(found, examples))


def _cores(examples: Sequence[Example]) -> tuple[list[str], list[str]]:
    """The prompts in plain letters, and each without the words that begin or end all."""
    whole = [_plain(example.prompt) for example in examples]
    ends = whole, [text[::-1] for text in whole]
    before, after = (re.sub(r"\w+$", "", commonprefix(end)) for end in ends)  # noqa: RUF071
    return whole, [text[len(before) : len(text) - len(after)].strip() for text in whole]


def _find_places(
    file: Predictions, examples: Sequence[Example], scope: str
) -> tuple[By, Sequence[int]]:
    """How rows name their examples, and the index of the example of each: uids win, then prompts
    that tell all rows apart (unless ids are decisive), then positions, then the order."""
    rows, uids = file.rows, {example.uid: at for at, example in enumerate(examples)}
    columns = {name: [str(row.ids.get(name)) for row in rows] for name in rows[0].ids}
    for values in columns.values():
        if uids.keys() >= {*values} and file.form != "lm-eval samples":
            return "uid", [uids[value] for value in values]
    if not file.decisive and (asked := _find_by_prompt(rows, examples)) is not None:
        return "prompt", asked
    if not columns:
        return "order", range(len(rows))
    places = {name: [*map(_integer, values)] for name, values in columns.items()}
    name, first = next(iter(places.items()))
    if other := next((other for other, found in places.items() if found != first), None):
        raise UserError(
            f"{file.path} has columns {name!r} and {other!r} that name different examples: choose "
            "one with --id-column."
        )
    wrong = next((at for at, place in enumerate(first) if not 0 <= place < len(uids)), None)
    from_one = not file.decisive and len(rows) > 1 and sorted(first) == [*range(1, len(rows) + 1)]
    if wrong is not None or from_one:
        raise UserError(
            f"{rows[wrong or 0].place}: the {name} {columns[name][wrong or 0]!r:.80} is neither a "
            f"uid nor a position, counted from 0, of {scope} (the first uid is {next(iter(uids))})"
            f": give the uid of each example, or {_CHECK}."
        )
    return "position", first


def _find_by_prompt(
    rows: Sequence[Prediction], examples: Sequence[Example]
) -> Sequence[int] | None:
    """The example of each row by its prompt; None where prompts do not tell."""
    places: dict[str, list[int]] = {}
    for at, texts in enumerate(zip(*_cores(examples), strict=True)):
        for text in {*texts} - {""}:
            places.setdefault(text, []).append(at)
    found: dict[int, None] = {}
    for row in rows:
        asked = (places.get(_plain(text), []) for text in row.prompts.values())
        known = next(filter(None, asked), [])
        free = next((at for at in known if at not in found), None)
        if free is None or len({(examples[at].target, examples[at].images) for at in known}) > 1:
            return None
        found[free] = None
    return [*found]


def _check_prompts(found: Mapping[int, Prediction], examples: Sequence[Example]) -> None:
    """Raises UserError where no prompt of a row holds that of the example, or most of it."""
    wholes, cores = _cores(examples)
    for at, prediction in found.items():
        whole, core = wholes[at], cores[at]
        asked = [*map(_plain, prediction.prompts.values())]
        same = [core in one or (one in whole and 2 * len(one) >= len(core)) for one in asked]
        if core and asked and not any(same):
            raise _contradiction(prediction, examples[at], *next(iter(prediction.prompts.items())))


def _check_targets(
    found: Mapping[int, Prediction], task: Task, examples: Sequence[Example]
) -> None:
    """Raises UserError where a target differs (another data seed or level has the same ids), and
    where the task can read no target of the file."""
    unread, read = [], False
    for at, prediction in found.items():
        ours = task.parse(examples[at].target)
        for name, texts in prediction.targets.items():
            values = [answer.value for answer in map(task.parse, texts) if answer is not None]
            alike = _plain(examples[at].target) in map(_plain, texts)
            if not alike and (ours is None or (values and ours.value not in values)):
                raise _contradiction(prediction, examples[at], name, texts[0])
            alike |= bool(values)
            read |= alike
            unread += [] if alike else [(prediction, examples[at], name, texts[0])]
    if unread and not read:
        raise _contradiction(*unread[0])


def _contradiction(row: Prediction, example: Example, name: str, text: str) -> UserError:
    return UserError(
        f"{row.place}: its {name} {text!r:.80} is not that of the example {example.uid}: {_CHECK}, "
        f"give rows in another order their uid, or remove the column {name}."
    )


def _without_prompts(
    found: Mapping[int, Prediction], examples: Sequence[Example]
) -> tuple[Mapping[int, Prediction], list[str]]:
    """The predictions without the prompt that all of them repeat, after the same words in all."""
    cut: dict[int, tuple[str, str]] = {}
    for at, prediction in found.items():
        text = prediction.completion
        for prompt in sorted([*prediction.prompts.values(), examples[at].prompt], key=len)[::-1]:
            words = re.search(r"\s*".join(map(re.escape, prompt.split())), text)
            if words and prompt.strip():
                before = _plain(_MARKER.sub("", text[: words.start()]))
                cut[at] = before, _ROLE.sub("", text[words.end() :])
                break
    if len(cut) < len(found) or len({before for before, _ in cut.values()}) != 1:
        said = f"{len(cut):,} completions repeat their prompt and stay as they are"
        return found, [said] if cut else []
    shorter = {at: replace(prediction, completion=cut[at][1]) for at, prediction in found.items()}
    return shorter, ["each repeats its prompt, which is taken off"]


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def _integer(value: str) -> int:
    """A whole number, however it is written: 7, 7.0, 007; -1: it is none."""
    found = re.fullmatch(r"(\d{1,18})(\.0*)?", value.strip(), re.ASCII)
    return int(found[1]) if found else -1
