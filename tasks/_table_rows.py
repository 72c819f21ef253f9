"""Rows of the files of `table`: what each holds, and what is wrong with some."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from smmd_bench.contracts import UserError
from smmd_bench.storage.text_rows import read_named_rows, spell_rows

SPLITS = ("train", "validation", "test")
_TENTHS = (*["train"] * 8, "validation", "test")
_COLUMN = re.compile(r"\{\s*([^{}]+?)\s*\}")
REMEDY = "remove the row"
# A file may have thousands of wrong rows: the first show what is wrong.
_MOST_NAMED = 10


@dataclass(frozen=True, eq=False)
class Row:
    """A row of a file: its number there, from 1, the hash of its question or of a template's
    prompt, and its texts.

    empty: the column that its prompt or target needs, and that it lacks.
    """

    file: Path
    number: int
    uid: str
    hash: int
    split: str
    prompt: str
    target: str
    empty: str | None

    @property
    def place(self) -> str:
        """How errors name it."""
        return f"{self.file}, row {self.number}"


@dataclass(frozen=True)
class Columns:
    """The columns of a file by what they are for, and the template of its prompts.

    question: None where the user gave a template, which names its own columns.
    """

    question: str | None
    answer: str
    split: str | None
    template: str

    @property
    def essential(self) -> list[str]:
        """The columns that a row cannot be without, whatever its prompt."""
        return [name for name in (self.question, self.answer) if name]


def template_of(prompt: str, question: str) -> str:
    r"""The template that a parameter spells, with its line ends and a blank at its end. Raises
    UserError for doubled braces, which could be a column or a literal brace, and for no column."""
    if "{{" in prompt or "}}" in prompt:
        raise UserError(
            f"The prompt {prompt!r:.60} has doubled braces: write {{COLUMN}} for a column; a brace "
            "around the name of one cannot be written."
        )
    # All rows would have one prompt, and so one split.
    if prompt and not _COLUMN.search(prompt):
        raise UserError(
            f"The prompt {prompt!r:.60} names no column: write {{COLUMN}} where its text stands."
        )
    template = (prompt or f"{{{question}}}\nAnswer:").replace("\\n", "\n")
    return template if template[-1].isspace() else f"{template} "


def read_table(
    files: Mapping[str, Path], columns: Columns, **how: str | None
) -> list[Row]:
    """The rows of files, which are named by their split ("": the rows say it). `how` is of
    `read_rows`. Raises UserError for a file that lacks a column."""
    of_template = _COLUMN.findall(columns.template)
    needed = [*dict.fromkeys([*columns.essential, *of_template])]
    rows = []
    for split, file in files.items():
        content = read_named_rows(file, **how)
        # A question and its answer need two, so the separator was not recognised.
        if len(content[0]) == 1:
            raise UserError(
                f"{file} has one column, {next(iter(content[0]))!r}: part two by a comma, or name "
                "what parts them, as in table[separator=;]."
            )
        texts = spell_rows(file, content, [*needed, *filter(None, [columns.split])])
        for number, cells in enumerate(texts, start=1):
            prompt = _fill(columns.template, cells)
            # Rows that one column of a template has in common are questions of their own.
            hashed = cells[columns.question] if columns.question else prompt
            hash_of_row = zlib.crc32(hashed.encode())
            of_file = split or _split_of(hash_of_row)
            row = Row(
                file=file,
                number=number,
                uid=f"table-{split}-{number}" if split else f"table-{number}",
                hash=hash_of_row,
                split=cells[columns.split] if columns.split else of_file,
                prompt=prompt,
                target=cells[columns.answer],
                empty=next((name for name in needed if not cells[name]), None),
            )
            rows.append(row)
    return rows


def _split_of(hash_of_row: int) -> str:
    return _TENTHS[hash_of_row % 10]


def _fill(template: str, cells: Mapping[str, str]) -> str:
    return _COLUMN.sub(lambda match: cells[match[1]], template)


def check_rows(
    rows: Sequence[Row], columns: Columns, numbers: Mapping[str, object] | None
) -> tuple[list[Row], list[str]]:
    """The rows with their splits, and what people should know of them, in sentences.

    numbers: of each row by uid, None for what is none; None where answers are texts.
    Raises UserError for all rows that are not right.
    """
    checked = _draw_validation(rows)
    repeats = _find_repeats(checked)

    # Intervals count each row of the test as a question of its own.
    mistakes = {row: text for row, text in repeats.items() if row.split == "test"}
    mistakes |= _find_mistakes(checked, columns, numbers)
    wrong = {row: mistakes[row] for row in checked if row in mistakes}
    remedy = REMEDY
    if next(iter(wrong), None) in repeats:
        remedy = f"{REMEDY}, or add a column that differs to prompt="
    refuse_rows(wrong, remedy)

    notes = []
    drawn = [old for old, new in zip(rows, checked, strict=True) if old is not new]
    if drawn:
        notes.append(
            f"{drawn[0].file} has no row for validation: {len(drawn):,} of its train rows are "
            "drawn for it, by the hash that splits rows."
        )
    if repeats:
        row, repeat = next(iter(repeats.items()))
        notes.append(
            f"{len(repeats):,} rows have the prompt of another, such as {row.place}: {repeat}."
        )
    return checked, notes


def _draw_validation(rows: Sequence[Row]) -> list[Row]:
    """The rows, of which a tenth of those for training validate where no others do."""
    if any(row.split == "validation" for row in rows):
        return [*rows]
    drawn = []
    for row in rows:
        if row.split == "train" and _split_of(row.hash) == "validation":
            row = replace(row, split="validation")
        drawn.append(row)
    return drawn


def _find_mistakes(
    rows: Sequence[Row], columns: Columns, numbers: Mapping[str, object] | None
) -> Iterator[tuple[Row, str]]:
    """The first mistake of each row that has one."""
    split_by_prompt: dict[str, str] = {}
    for row in rows:
        # A prompt in two splits would be trained on and tested.
        other_split = split_by_prompt.setdefault(row.prompt, row.split)
        if row.empty in columns.essential:
            yield row, f"its {' or '.join(columns.essential)} is empty"
        elif row.empty is not None:
            yield row, f"its {row.empty} is empty, and the prompt needs it"
        elif numbers is not None and numbers[row.uid] is None:
            yield row, f"its {columns.answer} is no number"
        elif row.split not in SPLITS:
            mistake = f"its {columns.split} is {row.split!r}"
            yield row, f"{mistake}, not train, validation or test"
        elif other_split != row.split:
            yield row, f"its prompt {row.prompt!r:.60} is in another split, too"


def _find_repeats(rows: Sequence[Row]) -> dict[Row, str]:
    """Rows whose prompt an earlier row of their split has, and which one that is."""
    first_rows: dict[tuple[str, str], Row] = {}
    repeats = {}
    for row in rows:
        first = first_rows.setdefault((row.split, row.prompt), row)
        if first is not row:
            answer = "another"
            if first.target == row.target:
                answer = "the same"
            repeats[row] = (
                f"its prompt is that of row {first.number}, with {answer} answer"
            )
    return repeats


def refuse_rows(mistakes: Mapping[Row, str], remedy: str = REMEDY) -> None:
    """Raise UserError for rows with a mistake, if there are any: how many, and the first ones."""
    if not mistakes:
        return
    (first, mistake), *_ = mistakes.items()
    sentence = f"{first.place}: {mistake}: correct it, or {remedy}"
    if len(mistakes) > 1:
        # A file is named where it is another than that of the row before.
        parts = []
        file = first.file
        for row, text in islice(mistakes.items(), 1, _MOST_NAMED):
            name = "" if row.file == file else f"{row.file.name}, "
            parts.append(f"{name}row {row.number}: {text}")
            file = row.file
        listed = "; ".join(parts)
        sentence += f" ({len(mistakes):,} rows are wrong, the next being {listed})"
    raise UserError(f"{sentence}.")
