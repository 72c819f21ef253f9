r"""A task from a file, without code: `table[path=mine.csv,question=Question,answer=Answer]`.

One example: the row "What is 12 plus 30?", "42" -> "What is 12 plus 30?\nAnswer: " -> "42". A hash
of the question says its split, unless a column does, and its place, so that the first are a fair
draw. Keys follow from the file's content; `resolved` has its whole path, for jobs elsewhere.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal

from smmd_bench.contracts import (
    Answer,
    Example,
    Metric,
    Modality,
    Split,
    TextMatch,
    TruncationRate,
    UserError,
    did_you_mean,
    parameter,
    parse_number,
    plain_text,
    positive,
)
from smmd_bench.plugin_system.parameters import canonical
from smmd_bench.storage.addresses import digest_of_files
from smmd_bench.storage.data_files import read_rows

from .arithmetic import METRICS

FORMAT = 1  # of splits, prompts and targets; `Table.version` is that of reading answers
_TENTHS = (*["train"] * 8, "validation", "test")
_COLUMN = re.compile(r"\{([^{}]+)\}")


@dataclass(frozen=True)
class Table:
    """The rows of a CSV, JSONL or Parquet file: a question and its answer each."""

    name: ClassVar[str] = "table"
    version: ClassVar[int] = 1
    modality: ClassVar[Modality] = Modality.TEXT
    finite: ClassVar[bool] = True
    rows_of_user: ClassVar[bool] = True
    """Positions in completions from elsewhere count in the order of the file."""
    licence: ClassVar[str] = "that of the file"

    path: str = parameter("", "the file, such as mine.csv")
    question: str = parameter("question", "its column of questions")
    answer: str = parameter("answer", "its column of answers")
    split: str | None = parameter(None, "its column of splits; none: 8 : 1 : 1 by a hash")
    prompt: str = parameter("", r"such as '{Question}\nAnswer: ', which is meant without one")
    answers: Literal["auto", "numbers", "text"] = parameter("auto", "auto: numbers where all are")
    max_new_tokens: int = parameter(64, "tokens that a completion may have", check=positive)
    title: str = parameter("", "in tables, in place of its file and columns", added_later=True)

    @property
    def paper_sizes(self) -> Mapping[Split, int]:
        """How many rows each split has."""
        return {split: len(found) for split, found in self._splits.items()}

    @property
    def label(self) -> str:
        """The spec with the name of the file alone: tables show it, and it needs no file."""
        if self.title:
            return canonical(Table(answers=self._answers, title=self.title))
        return canonical(replace(self, path=Path(self.path).name, answers=self._answers))

    def resolved(self) -> Table:
        """With the whole path, and what `auto` means: for a spec that is kept."""
        return replace(self, path=str(self._file), answers=self._answers)

    def examples(self, split: Split, seed: int, limit: int | None = None) -> Sequence[Example]:
        """The first `limit` examples. Raises UserError for a file that is not right."""
        if found := self._splits[split]:
            return found[:limit]
        raise UserError(f"{self._file} has no row for {split}: add rows, or name a split=COLUMN.")

    def identity(self, split: Split, seed: int) -> Mapping[str, Any]:
        """The digest of the file in place of its path, and how many rows the split has."""
        digest, kept = digest_of_files([self._file], self._file), self.paper_sizes[split]
        plain = replace(self, path=digest, answers="auto", max_new_tokens=64, title="")
        task = canonical(plain)
        return {"task": task, "format": FORMAT, "split": split, "kept": kept}

    def parse(self, completion: str) -> Answer | None:
        """The first line, which must be one number; None where answers are text."""
        value = parse_number(plain_text(completion).partition("\n")[0])
        return Answer(value) if self._answers == "numbers" and value is not None else None

    def metrics(self) -> Sequence[Metric]:
        """Those of arithmetic; of text, `text_match` selects."""
        return METRICS if self._answers == "numbers" else (TextMatch(), TruncationRate())

    @property
    def _answers(self) -> Literal["numbers", "text"]:
        if self.answers == "auto":
            return "numbers" if any(e.answer for s in self._splits.values() for e in s) else "text"
        return self.answers

    @property
    def _file(self) -> Path:
        if (file := Path(self.path).expanduser().resolve()).is_file():
            return file
        raise UserError(f"There is no file {file}: give table the path of one, path=FILE.")

    @property
    def _splits(self) -> Mapping[Split, Sequence[Example]]:
        return _read(self, self._file, self._file.stat().st_mtime_ns)


@lru_cache(4)
def _read(task: Table, file: Path, _: int) -> Mapping[Split, Sequence[Example]]:
    """The examples of a file that was written at that time. Raises UserError for its mistakes."""
    given = read_rows(file)
    template = (task.prompt or f"{{{task.question}}}\nAnswer:").replace("\\n", "\n")
    template += "" if template[-1].isspace() else " "
    named = (task.question, task.answer, task.split, *_COLUMN.findall(template))
    if len(given[0]) == 1:
        raise UserError(f"{file} has one column, {next(iter(given[0]))!r}: part two by a comma.")
    for name in (columns := [*filter(None, named)]):
        if name not in given[0]:
            raise UserError(f"{file} has no column '{name}': {did_you_mean(name, given[0])}")
    rows = [{name: _text(row.get(name)) for name in columns} for row in given]
    values = [parse_number(row[task.answer]) for row in rows]
    numbers = task.answers == "numbers" or (task.answers == "auto" and None not in values)
    if task.answers == "auto" and 0 < values.count(None) < len(values) / 2:
        at = values.index(None)
        raise UserError(
            f"{file}, row {at + 1}: its {task.answer} is {rows[at][task.answer]!r:.40}, and most "
            "others are numbers: correct it, or use table[answers=text]."
        )
    found: dict[Any, list[Any]] = {"train": [], "validation": [], "test": []}
    asked: dict[str, str] = {}
    for at, (row, value) in enumerate(zip(rows, values, strict=True), 1):
        target, place = row[task.answer], zlib.crc32(row[task.question].encode())
        split = row[task.split] if task.split else _TENTHS[place % 10]
        prompt = _COLUMN.sub(lambda match, row=row: row[match[1]], template)  # type: ignore[misc]
        other = asked.setdefault(prompt, split)
        mistakes = {
            f"its {task.question} or {task.answer} is empty": not (row[task.question] and target),
            f"its {task.answer} is no number": numbers and value is None,
            f"its {task.split} is {split!r}, not train, validation or test": split not in found,
            f"its prompt {prompt!r:.60} is in another split, too": other != split,
        }
        for mistake in (said for said, made in mistakes.items() if made):
            raise UserError(f"{file}, row {at}: {mistake}: correct it, or remove the row.")
        answer = Answer(value) if numbers and value is not None else None
        found[split].append((place, at, Example(f"table-{at}", prompt, target, answer)))
    return {split: [example for *_, example in sorted(drawn)] for split, drawn in found.items()}


def _text(value: Any) -> str:
    """A value of a column: a missing one is empty, and 18.0 is 18."""
    if isinstance(value, float):
        return "" if value != value else repr(value).removesuffix(".0")
    return "" if value is None else str(value).strip()
