"""The rows of the real ChartQA: where they come from, which are kept, and what identifies them.

The official folder is found in the folder of local copies (--data-dir) as `ChartQA Dataset/SPLIT/
{SPLIT_human.json, SPLIT_augmented.json, png/}`, SPLIT one of train, val, test; its rows are such as
{"imgname": "166.png", "query": "...?", "label": "62"}.
"""

from __future__ import annotations

import hashlib
import math
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from smmd_bench.contracts import UserError, data_folder, first_number, parse_number
from smmd_bench.storage.addresses import digest_of_files
from smmd_bench.storage.data_files import read_rows

from ._picture_files import kept_digest

FOLDERS = ("ChartQA Dataset", "chartqa/ChartQA Dataset", "chartqa", ".")
OFFICIAL_NAMES = {"train": "train", "validation": "val", "test": "test"}
_PLAIN = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?")


@dataclass(frozen=True, slots=True)
class Row:
    """A question of ChartQA about a picture; `number` is its place in its file."""

    image: Path
    query: str
    label: str
    origin: str
    number: int


@dataclass(frozen=True, slots=True)
class Kept:
    """The rows whose label is a plain number, and how many others there are, by reason."""

    rows: tuple[Row, ...]
    dropped: Mapping[str, int]


def plain_number(label: str) -> Fraction | None:
    """The number that a label is, by `float(label)` made strict: ASCII, finite, no underscore.

    `62`, `0.57`, `-3`, `1e5` are; `62%`, `1,234`, `$5`, `nan` and "Yes" are not.
    """
    text = label.strip()
    if not _PLAIN.fullmatch(text) or not math.isfinite(float(text)):
        return None
    value = Fraction(text)
    return value if first_number(f" {text}") == value else None


class ChartSource(ABC):
    """Where rows come from; their content is cached until a file changes."""

    name: ClassVar[str]
    remedy: ClassVar[str]
    local: ClassVar[Mapping[str, tuple[str, ...]]]
    """The names of a split's files."""

    @abstractmethod
    def files(self, split: str) -> list[Path]:
        """The files with the questions of a split. Raises UserError if one cannot be had."""

    @abstractmethod
    def rows(self, split: str) -> Iterable[Row]: ...

    def file(self, split: str) -> Path:
        return self.files(split)[0]

    def kept(self, split: str) -> Kept:
        return _kept(self, split, self._stamp(split))

    def identity(self, split: str) -> dict[str, Any]:
        """Digests of the questions and the pictures, and how many rows are kept and dropped."""
        files, kept = self.files(split), self.kept(split)
        return {
            "questions": digest_of_files(files, files[0].parent),
            "images": _digest(self, split, self._stamp(split)),
            "kept": len(kept.rows),
            "dropped": dict(kept.dropped),
        }

    def pictures(self, rows: Sequence[Row]) -> list[Path]:
        """The pictures of rows, each once. Raises UserError if any is absent."""
        files = sorted({row.image for row in rows})
        if absent := [file for file in files if not file.is_file()]:
            raise UserError(
                f"The image {absent[0]} is absent ({len(absent):,} of the {len(files):,} images "
                f"that the questions name are): {self.remedy}."
            )
        return files

    def _stamp(self, split: str) -> tuple[Any, ...]:
        """What changes when a file of questions or the list of pictures beside it does."""
        files = self.files(split)
        watched = [*files, files[0].parent / "png"]
        return tuple((p, p.stat().st_mtime_ns, p.stat().st_size) for p in watched if p.exists())


class OfficialCharts(ChartSource):
    """Two files of questions a split, the human ones first."""

    name = "official"
    remedy = "copy the official folder again"
    local: ClassVar[Mapping[str, tuple[str, ...]]] = {
        ours: (f"{theirs}/{theirs}_human.json", f"{theirs}/{theirs}_augmented.json")
        for ours, theirs in OFFICIAL_NAMES.items()
    }

    def files(self, split: str) -> list[Path]:
        folder = self._folder(split)
        files = [folder / name for name in self.local[split]]
        for file in files:
            if not file.is_file():
                raise UserError(
                    f"ChartQA's file {file} is missing, and without it the {split} split is not "
                    "whole: copy the official folder again."
                )
        return files

    def rows(self, split: str) -> Iterator[Row]:
        for file, origin in zip(self.files(split), ("human", "augmented"), strict=True):
            for number, row in enumerate(read_rows(file, ("imgname", "query", "label"))):
                name, query = str(row["imgname"]), " ".join(str(row["query"]).split())
                if Path(name).name != name:
                    raise UserError(
                        f"Row {number + 1} of {file} names the image {name!r}, which is not a "
                        "plain file name: copy the file again."
                    )
                yield Row(file.parent / "png" / name, query, str(row["label"]), origin, number)

    def _folder(self, split: str) -> Path:
        given = data_folder()
        if given is None:
            raise UserError(
                "chartqa[source=official] needs the folder that holds 'ChartQA Dataset': give it "
                "with --data-dir, or ask for drawn charts with chartqa[source=synthetic]."
            )
        for folder in (given / name for name in FOLDERS):
            if any((folder / file).is_file() for file in self.local[split]):
                return folder
        raise UserError(
            f"The data folder {given} has no ChartQA Dataset/{self.local[split][0]}: put the "
            "official folder there, or ask for drawn charts with chartqa[source=synthetic]."
        )


@lru_cache(maxsize=12)
def _kept(source: ChartSource, split: str, stamp: object) -> Kept:
    kept, dropped = [], Counter[str]()
    for row in source.rows(split):
        if plain_number(row.label) is not None:
            kept.append(row)
        else:  # written otherwise: with a percent sign, commas, a currency, or as a fraction
            written = parse_number(row.label) is not None
            dropped["written otherwise" if written else "not a number"] += 1
    if not kept:
        raise UserError(
            f"No question in {source.file(split)} has a number for an answer: copy it again."
        )
    return Kept(tuple(kept), dict(sorted(dropped.items())))


@lru_cache(maxsize=12)
def _digest(source: ChartSource, split: str, stamp: object) -> str:
    """Of the contents and names of a split's pictures."""
    files, root = source.pictures(source.kept(split).rows), source.file(split).parent

    def compute() -> str:
        whole = hashlib.blake2b(digest_size=16)
        for file in files:
            digest = hashlib.blake2b(file.read_bytes(), digest_size=16).hexdigest()
            whole.update(f"{file.relative_to(root)} {digest}\n".encode())
        return whole.hexdigest()

    return kept_digest(root, files, compute)
