r"""A task from a file, without code: `table[path=mine.csv,question=Question,answer=Answer]`.

One example: the row "What is 12 plus 30?", "42" -> "What is 12 plus 30?\nAnswer: " -> "42". A
hash of the question, or of the whole prompt where a template is given, says its split, unless a
column or its file does, and its place, so that the first are a fair draw. Keys follow from the
file's content; `resolved` has its whole path, for jobs elsewhere.

A target is the answer as the file spells it, `12,58` where `decimal=","`, and a completion is read
as the file is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

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
    positive,
)
from smmd_bench.plugin_system.parameters import canonical
from smmd_bench.storage.addresses import digest_of_files
from smmd_bench.storage.text_rows import SEPARATORS

from ._table_numbers import Spelling, read_numbers, spelling_of
from ._table_rows import SPLITS, Columns, check_rows, read_table, template_of
from .arithmetic import METRICS

FORMAT = 3
"""Of splits, prompts and targets; `Table.version` is that of reading answers."""
_TEXT_METRICS: tuple[Metric, ...] = (TextMatch(), TruncationRate())


@dataclass(frozen=True)
class Content:
    """What files say: examples by split, in the order of a hash, how they were read, and sentences
    for people."""

    examples: Mapping[Split, Sequence[Example]]
    answers: Literal["numbers", "text"]
    notes: Sequence[str]

    @cached_property
    def has_decimals(self) -> bool:
        """Whether an answer has a decimal part, other than as a fraction such as 1/3."""
        return any(
            example.answer
            and example.answer.value.denominator > 1
            and "/" not in example.target
            for example in chain.from_iterable(self.examples.values())
        )


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
    question: str = parameter("question", "its column of questions, without a prompt")
    answer: str = parameter("answer", "its column of answers")
    split: str | None = parameter(
        None, "its column of splits; none: 8 : 1 : 1 by a hash"
    )
    prompt: str = parameter(
        "", r"such as '{Question}\nAnswer: ', which is meant without one"
    )
    answers: Literal["auto", "numbers", "text"] = parameter(
        "auto", "auto: numbers where all are"
    )
    max_new_tokens: int = parameter(
        64, "tokens that a completion may have", check=positive
    )
    title: str = parameter(
        "", "in tables, in place of its file and columns", added_later=True
    )
    train: str = parameter(
        "", "in place of path: the file of this split", added_later=True
    )
    validation: str = parameter(
        "", "the same; none: a tenth of train", added_later=True
    )
    test: str = parameter("", "the same", added_later=True)
    decimal: Literal[".", ","] | None = parameter(
        None,
        "decimal sign of answers; none: a point, unless commas could be",
        added_later=True,
    )
    thousands: Literal[",", ".", " ", "'"] | None = parameter(
        None, "what parts thousands; none: a comma, or a point after decimal commas",
        added_later=True,
    )  # fmt: skip
    separator: Literal[",", ";", "|", "tab"] | None = parameter(
        None, "of columns of CSV; none: as the header shows", added_later=True
    )
    encoding: str | None = parameter(
        None, "such as cp1252; none: UTF-8", added_later=True
    )
    select: str = parameter("", "metric that selects the epoch", added_later=True)

    def __post_init__(self) -> None:
        spelling_of(self.decimal, self.thousands)

    @property
    def paper_sizes(self) -> Mapping[Split, int]:
        """How many rows each split has."""
        return {
            split: len(examples) for split, examples in self._content.examples.items()
        }

    @property
    def label(self) -> str:
        """The spec with the names of files alone, which needs no file."""
        answers = self._answers
        if self.title:
            # A title stands for files and columns, and not for how answers are read.
            plain = Table(
                title=self.title,
                answers=answers,
                decimal=self.decimal,
                thousands=self.thousands,
            )
            return canonical(plain)
        names: dict[str, Any] = {
            field: Path(place).name for field, place in self._places.items()
        }
        return canonical(replace(self, answers=answers, **names))

    @property
    def display_name(self) -> str:
        """What tables and figures call it: its title, or the names of its files."""
        names = [Path(place).name for place in self._places.values()]
        return self.title or ", ".join(dict.fromkeys(names))

    @property
    def notes(self) -> Sequence[str]:
        """What people should know of the rows before they train or score."""
        return self._content.notes

    @property
    def select_by(self) -> str:
        """The metric that selects the epoch: the error of decimals, which are seldom exact."""
        names = [metric.name for metric in self.metrics()]
        if self.select and self.select not in names:
            raise UserError(
                f"table[select={self.select}] is no metric of {self._answers}: "
                f"{did_you_mean(self.select, names)}"
            )
        if self.select:  # the file need not be read, or be there
            return self.select
        return "mean_absolute_error" if self._content.has_decimals else names[0]

    def resolved(self) -> Table:
        """With whole paths, and what `auto` means: for a spec that is kept."""
        return replace(self._name_files(self._files), answers=self._answers)

    def examples(
        self, split: Split, seed: int, limit: int | None = None
    ) -> Sequence[Example]:
        """The first `limit` examples. Raises UserError for a file that is not right."""
        # Raised here, before a training ends and finds no metric to select by.
        _ = self.select_by
        if examples := self._content.examples[split]:
            return examples[:limit]
        files = " and ".join(map(str, self._files.values()))
        raise UserError(
            f"{files} has no row for {split}: add rows, or name a split=COLUMN or {split}=FILE."
        )

    def identity(self, split: Split, seed: int) -> Mapping[str, Any]:
        """The digest of the file in place of its path, and how many rows the split has."""
        content: dict[str, Any] = {
            field: digest_of_files([file], file) for field, file in self._files.items()
        }
        # Neither what reads completions nor what selects an epoch changes an example.
        content |= {"answers": "auto", "max_new_tokens": 64, "title": "", "select": ""}
        task = canonical(replace(self, **content))
        kept = self.paper_sizes[split]
        return {"task": task, "format": FORMAT, "split": split, "kept": kept}

    def parse(self, completion: str) -> Answer | None:
        """The first line, which must be one number, as the file spells it; None of text."""
        if self._answers != "numbers":
            return None
        value = self._spelling.read_completion(completion)
        return None if value is None else Answer(value)

    def metrics(self) -> Sequence[Metric]:
        """Those of arithmetic, or of text; see `select_by`."""
        return METRICS if self._answers == "numbers" else _TEXT_METRICS

    @property
    def _answers(self) -> Literal["numbers", "text"]:
        return self._content.answers if self.answers == "auto" else self.answers

    @property
    def _spelling(self) -> Spelling:
        return spelling_of(self.decimal, self.thousands)

    @property
    def _places(self) -> dict[str, str]:
        """The files that are named, by the parameter."""
        named = {field: getattr(self, field) for field in ("path", *SPLITS)}
        return {field: place for field, place in named.items() if place}

    @property
    def _files(self) -> dict[str, Path]:
        """The files, by the parameter. Raises UserError for one that is not there."""
        places = self._places
        has_path = "path" in places
        if places and (self.split if not has_path else len(places) > 1):
            named = [*places, "split"] if self.split else places
            raise UserError(
                f"table has {' and '.join(named)}: name "
                "one file by path, with its splits in a column, or a file for each split."
            )
        files = {
            field: Path(place).expanduser().resolve() for field, place in places.items()
        }

        # Without any file, the current folder stands for the one that is absent.
        for field, file in (files or {"path": Path().resolve()}).items():
            if not file.is_file():
                raise UserError(
                    f"There is no file {file}: give table the path of one, {field}=FILE."
                )
        return files

    @property
    def _content(self) -> Content:
        files = self._files
        # The times of the files are a part of the key: an edited file is read again.
        times = tuple(file.stat().st_mtime_ns for file in files.values())
        return _read(self._name_files(files), times)

    def _name_files(self, files: Mapping[str, Path]) -> Table:
        """The same with these paths in place of those that were given."""
        places: dict[str, Any] = {field: str(file) for field, file in files.items()}
        return replace(self, **places)


@lru_cache(4)
def _read(task: Table, times: tuple[int, ...]) -> Content:
    """What files say that were written at these times. Raises UserError for their mistakes."""
    # A spec that is kept says what `auto` has read.
    if task.answers == "numbers":
        with suppress(UserError):
            content = _read(replace(task, answers="auto"), times)
            if content.answers == "numbers":
                return content
    files = task._files
    # A file that `path` names has the rows of all splits.
    if "path" in files:
        files = {"": files["path"]}
    columns = Columns(
        question=None if task.prompt else task.question.strip(),
        answer=task.answer.strip(),
        split=task.split.strip() if task.split else None,
        template=template_of(task.prompt, task.question.strip()),
    )
    separator = SEPARATORS.get(task.separator or "")
    rows = read_table(files, columns, separator=separator, encoding=task.encoding)
    numbers = read_numbers(
        rows, columns.answer, task.answers, task.decimal, task.thousands
    )
    checked, notes = check_rows(rows, columns, numbers)

    examples: dict[Split, list[Example]] = {"train": [], "validation": [], "test": []}

    # By the hash, and by the number where two questions are equal.
    for row in sorted(checked, key=lambda row: (row.hash, row.number)):
        number = None if numbers is None else numbers[row.uid]
        example = Example(
            uid=row.uid,
            prompt=row.prompt,
            target=row.target,
            answer=None if number is None else Answer(number),
            # the order of the file, which predictions have
            attributes={"row": row.number},
        )
        examples[cast(Split, row.split)].append(example)
    answers: Literal["numbers", "text"] = "text" if numbers is None else "numbers"
    return Content(examples, answers, notes)
