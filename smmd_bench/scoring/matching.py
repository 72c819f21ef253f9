"""Which row of a file answers which example: by uid, prompt, position, or an order that is proven.

Nothing is guessed: where neither ids nor prompts nor targets say it, the file is refused. Positions
count in the order of the task's examples, and for a task whose rows are a file of the user's, in
the order of that file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os.path import commonprefix

from ..contracts import Example, Task
from ..errors import UserError
from .predictions import Prediction, Predictions
from .score import value_of

_CHECK = "check --task, --split, --data-seed and --limit"


@dataclass(frozen=True, slots=True)
class _Sought:
    """The examples that rows are matched with. before, after: the plain text that begins and ends
    every prompt; cores: what each prompt has between them."""

    task: Task
    examples: Sequence[Example]
    scope: str
    sample: str
    before: str
    after: str
    cores: Sequence[str]


def match(
    file: Predictions,
    task: Task,
    examples: Sequence[Example],
    scope: str,
    *,
    first: int | None = None,
    partial: bool = False,
    sample: str = "smmd-bench sample TASK --split test --json",
) -> Predictions:
    """The file with its rows matched with the examples; `scope` names these in errors.

    first: so many examples are scored; None: all. sample: the command that prints their uids.
    Raises UserError for the first row that fits no example, and, unless `partial`, for an example
    without a row.
    """
    sought = _Sought(task, examples, scope, sample, *_split_prompts(examples))
    by, places = _find_places(file, sought)
    rows: dict[int, Prediction] = {}
    for place, row in zip(places, file.rows, strict=True):
        uid = examples[place].uid
        # Two answers to an example: to take either would be a guess.
        if place in rows:
            raise UserError(
                f"{row.place}: the example {uid} is already in {rows[place].place}: keep one of "
                "them."
            )
        if (name := _find_contradiction(row, sought, place)) is not None:
            raise UserError(
                f"{row.place}: its {name} is not that of the example {uid}: {_CHECK}, give rows in "
                f"another order their uid, or remove the column {name}."
            )
        rows[place] = row

    missing = [place for place in range(len(examples))[:first] if place not in rows]
    if missing and not partial:
        raise UserError(
            f"{file.path} has no completion for {len(missing):,} of {scope} (the first: "
            f"{examples[missing[0]].uid}): add them, or score fewer with --partial or --limit."
        )

    # Rows beyond the limit were matched all the same: they prove an order.
    rows = {place: row for place, row in rows.items() if first is None or place < first}
    return replace(file, by=by, found=rows)


def follows_user_file(task: Task) -> bool:
    """Whether the examples are the rows of a file of the user's, each with uid `NAME-ROW`."""
    return bool(getattr(task, "rows_of_user", False))


def _find_places(file: Predictions, sought: _Sought) -> tuple[str, Sequence[int]]:
    """How rows name their examples, and the index of the example of each."""
    uids = {example.uid: place for place, example in enumerate(sought.examples)}
    names = _id_columns(file, uids)
    complete = []
    for name in names:
        cells = [row.cells.get(name) for row in file.rows]
        places = [uids[cell] for cell in cells if cell in uids]
        if len(places) == len(cells):
            complete.append(places)

    # A column in which every row has a uid is evidence enough.
    if complete:
        differ = any(places != complete[0] for places in complete[1:])
        if differ:
            raise UserError(
                f"{file.path} has several columns of uids, {', '.join(names)}, which differ: name "
                "one with --id-column."
            )
        return "uid", complete[0]

    # Prompts come before positions: an id from 0 may count another split or order.
    by_prompt = _find_by_prompt(file.rows, sought)
    if by_prompt is not None:
        return "prompt", by_prompt
    if names:
        return "position", _find_by_position(file, sought, uids, names[0])
    return _find_by_order(file, sought)


def _id_columns(file: Predictions, uids: Mapping[str, int]) -> list[str]:
    """The columns with the usual names of ids, or those in which some row has a uid."""
    id_names = [*file.rows[0].ids]
    if file.fixed_id:
        return id_names
    names = dict.fromkeys(name for row in file.rows for name in row.cells)
    with_uids = [
        name
        for name in names
        if name not in id_names
        and any(row.cells.get(name) in uids for row in file.rows)
    ]
    return [*id_names, *with_uids]


def _find_by_position(
    file: Predictions, sought: _Sought, uids: Mapping[str, int], name: str
) -> list[int]:
    """The index of the example of each row, by a column with positions from 0, or uids."""
    in_order, positions = _order_of_positions(sought), []
    for row in file.rows:
        cell = row.ids.get(name, row.cells.get(name, ""))
        digits = re.fullmatch(r"(\d{1,15})(\.0*)?", cell, re.ASCII)  # 7, 7.0, 007
        position = int(digits[1]) if digits else -1
        # A uid goes before a position, should uids be numbers.
        if cell in uids:
            position = in_order.index(uids[cell])
        if not 0 <= position < len(in_order):
            raise UserError(
                f"{row.place}: its {name} {cell!r:.80} is no uid or position (from 0) in "
                f"{sought.scope}: give uids (the first is {sought.examples[0].uid}), or {_CHECK}."
            )
        positions.append(position)

    # One that counts from 1 would shift every answer by an example.
    if len(positions) > 1 and sorted(positions) == [*range(1, len(positions) + 1)]:
        raise UserError(
            f"{file.path} counts its {name} from 1, not 0: subtract 1, or give uids."
        )
    return [in_order[position] for position in positions]


def _order_of_positions(sought: _Sought) -> list[int]:
    """The indices of the examples in the order that a user counts in."""
    # The task's own order may be drawn: a user counts the rows of the file.
    indices = range(len(sought.examples))
    if not follows_user_file(sought.task):
        return [*indices]
    return sorted(
        indices, key=lambda at: int(sought.examples[at].uid.rpartition("-")[2])
    )


def _find_by_order(file: Predictions, sought: _Sought) -> tuple[str, Sequence[int]]:
    """Row by row, where the rows are those of the user's file, or prove that order themselves."""
    remedy = f"add the column uid that `{sought.sample}` prints beside each prompt"
    if len(file.rows) != len(sought.examples):
        raise UserError(
            f"{file.path} has {len(file.rows):,} rows for {sought.scope}, and no ids, or prompts "
            f"that tell: {remedy}."
        )
    in_order = _order_of_positions(sought)

    # Files that we wrote ourselves are in the order of the task.
    order_of_task = [*range(len(sought.examples))]
    for order in (in_order, order_of_task):
        rows = zip(file.rows, order, strict=True)
        if all(_has_proof(row, sought, place) for row, place in rows):
            return "the order of the examples", order

    # A prompt or target of another example is named by `match`, with its row.
    has_facts = any(row.prompts or row.targets for row in file.rows)
    follows_file = follows_user_file(sought.task)
    if not follows_file and not has_facts:
        raise UserError(
            f"{file.path} has no ids, prompts or targets that prove which example each row "
            f"answers, of {sought.scope}: {remedy}."
        )
    name = _find_other_order(file.rows)
    if name is not None:
        raise UserError(
            f"{file.path} has a number in its column {name} that may say another order of its "
            f"rows: name the column of ids with --id-column, or {remedy}."
        )
    for row, place in zip(file.rows, in_order, strict=True):
        proven = follows_file or _has_proof(row, sought, place)
        if not proven and _find_contradiction(row, sought, place) is None:
            raise UserError(
                f"{row.place}: no id, prompt or target proves that it answers the example "
                f"{sought.examples[place].uid}: {remedy}."
            )
    return "the order of the rows in the task's file", in_order


def _find_other_order(rows: Sequence[Prediction]) -> str | None:
    """A column of whole numbers, each once, that do not rise from row to row; None: no such."""
    # Such a column is an id under another name, which the file's order contradicts.
    for name in rows[0].cells:
        cells = [row.cells.get(name, "") for row in rows]
        if all(re.fullmatch(r"\d{1,15}", cell, re.ASCII) for cell in cells):
            numbers = [int(cell) for cell in cells]
            if len({*numbers}) == len(numbers) and numbers != sorted(numbers):
                return name
    return None


def _has_proof(row: Prediction, sought: _Sought, place: int) -> bool:
    """Whether the row holds the question of an example, or its target."""
    if _find_contradiction(row, sought, place) is not None:
        return False
    core = sought.cores[place]
    # Where all prompts are equal, as those of clock_time are, cores are empty.
    prompts = map(_plain, row.prompts.values())
    if core and any(core in prompt for prompt in prompts):
        return True
    example = sought.examples[place]
    return any(
        _is_target(sought.task, example, texts) for texts in row.targets.values()
    )


def _find_by_prompt(
    rows: Sequence[Prediction], sought: _Sought
) -> Sequence[int] | None:
    """The example of each row by its prompt; None where prompts do not tell."""
    by_text: dict[str, list[int]] = {}
    for place, core in enumerate(sought.cores):
        same_question = by_text.setdefault(core, [])
        same_question.append(place)
        # Files have the whole prompt, or the question alone.
        by_text[_plain(sought.examples[place].prompt)] = same_question

    matched = []
    for row in rows:
        spellings = _spell_questions(row, sought)
        places = next(filter(None, map(by_text.get, spellings)), [])
        answers = {
            (sought.examples[at].target, sought.examples[at].images) for at in places
        }
        # Examples with one question and one answer can stand for each other.
        if len(answers) != 1:
            return None
        # Popped, so that two rows with one question answer two examples.
        matched.append(places.pop(0))
    return matched


def _spell_questions(row: Prediction, sought: _Sought) -> list[str]:
    """What a row may ask, in plain letters. A cell of another column than a prompt's, such as 3, is
    no question unless it has some of what begins or ends all of them."""
    prompts = [_plain(text) for text in row.prompts.values()]
    cells = [_plain(cell) for cell in row.cells.values()]
    cores = [(cell, _take_core(cell, sought)) for cell in cells]
    return [
        *prompts,
        *(_take_core(prompt, sought) for prompt in prompts),
        *(core for cell, core in cores if core != cell),
    ]


def _take_core(text: str, sought: _Sought) -> str:
    """A question without as much of what begins and ends every prompt as it has itself."""
    begins = (sought.before[at:] for at in range(len(sought.before)))
    start = next((len(part) for part in begins if text.startswith(part)), 0)
    ends = (sought.after[:length] for length in range(len(sought.after), 0, -1))
    end = next((len(part) for part in ends if text.endswith(part)), 0)
    return text[start : len(text) - end].strip()


def _split_prompts(examples: Sequence[Example]) -> tuple[str, str, list[str]]:
    """The words that begin and end all prompts, in plain letters, and each prompt without them."""
    # A program may have used its own template around the question. Half a word is not cut off.
    prompts = [_plain(example.prompt) for example in examples]
    prefix = _shared_start(prompts)
    questions = [prompt[len(prefix) :] for prompt in prompts]
    suffix = _shared_start([question[::-1] for question in questions])[::-1]
    cores = [question.removesuffix(suffix).strip() for question in questions]
    return prefix, suffix, cores


def _shared_start(texts: list[str]) -> str:
    return re.sub(r"\w+$", "", commonprefix(texts))  # noqa: RUF071


def _find_contradiction(row: Prediction, sought: _Sought, place: int) -> str | None:
    """The column with another example's prompt or target, as with another data seed; None: none."""
    example = sought.examples[place]
    prompt = _plain(example.prompt)
    prompts = {name: _plain(text) for name, text in row.prompts.items()}
    core = sought.cores[place]
    if prompts and not any(core in text or text in prompt for text in prompts.values()):
        return next(iter(prompts))

    gold = value_of(sought.task, example.target)
    for name, texts in row.targets.items():
        has_numbers = any(value_of(sought.task, text) is not None for text in texts)
        # A column of letters or explanations is no target of a task of numbers.
        comparable = gold is None or has_numbers
        if comparable and not _is_target(sought.task, example, texts):
            return name
    return None


def _is_target(task: Task, example: Example, texts: Sequence[str]) -> bool:
    """Whether one of these is the target of an example, as a number or as a text."""
    gold = value_of(task, example.target)
    if gold is not None and gold in [value_of(task, text) for text in texts]:
        return True
    return _plain(example.target) in map(_plain, texts)


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
