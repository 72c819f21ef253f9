"""The rows of the real ChartQA, from its official folder or from the hub, and which are kept.

Official: `ChartQA Dataset/SPLIT/{SPLIT_human.json, SPLIT_augmented.json, png/}`, SPLIT one of
train, val, test; rows such as {"imgname": "166.png", "query": "...?", "label": "62"}. The hub's
copy has the columns image, query, label (a list of one) and human_or_machine; its pictures are kept
in the cache folder as files named by their content.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from smmd_bench.contracts import UserError, first_number, parse_number
from smmd_bench.storage.addresses import digest_of_files
from smmd_bench.storage.data_files import VARIABLE

OFFICIAL_NAMES = {"train": "train", "validation": "val", "test": "test"}
FOLDERS = ("ChartQA Dataset", "chartqa/ChartQA Dataset", "chartqa", ".")
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


def data_folder_given() -> bool:
    """Whether there is a folder of local copies (--data-dir)."""
    return bool(os.environ.get(VARIABLE))


def plain_number(label: str) -> Fraction | None:
    """The number that a label is, by `float(label)` made strict: ASCII, finite, no underscore.

    `62`, `0.57`, `-3`, `1e5` are; `62%`, `1,234`, `$5`, `nan` and "Yes" are not.
    """
    text = label.strip()
    if not _PLAIN.fullmatch(text) or not math.isfinite(float(text)):
        return None
    value = Fraction(text)
    return value if first_number(f" {text}") == value else None


def keep_numbers(rows: Iterable[Row]) -> Kept:
    """Only the rows with a plain number; the reasons are `not a number` and `written otherwise`
    (with a percent sign, commas, a currency or as a fraction)."""
    kept, dropped = [], Counter[str]()
    for row in rows:
        if plain_number(row.label) is not None:
            kept.append(row)
        else:
            written = parse_number(row.label) is not None
            dropped["written otherwise" if written else "not a number"] += 1
    return Kept(tuple(kept), dict(sorted(dropped.items())))


class OfficialCharts:
    """The official folder, found in the folder of local copies."""

    name = "official"
    remedy = "copy the official folder again"
    local: Mapping[str, tuple[str, ...]] = {
        ours: (f"{theirs}/{theirs}_human.json", f"{theirs}/{theirs}_augmented.json")
        for ours, theirs in OFFICIAL_NAMES.items()
    }

    def folder(self, split: str) -> Path:
        """The folder that holds the split's two files of questions.

        Raises UserError where there is none.
        """
        given = os.environ.get(VARIABLE)
        if not given:
            raise UserError(
                "chartqa[source=official] needs the folder that holds 'ChartQA Dataset': give it "
                "with --data-dir, or ask for drawn charts with chartqa[source=synthetic]."
            )
        found = [Path(given) / name for name in FOLDERS]
        for folder in found:
            if any((folder / file).is_file() for file in self.local[split]):
                return folder
        raise UserError(
            f"The data folder {given} has no ChartQA Dataset/{self.local[split][0]}: put the "
            "official folder there, or ask for drawn charts with chartqa[source=synthetic]."
        )

    def file(self, split: str) -> Path:
        """The file of the split's human questions."""
        return self._files(split)[0]

    def rows(self, split: str) -> list[Row]:
        """All rows of a split, human questions first. Raises UserError for a broken file."""
        return [
            _row(file, number, content, origin, file.parent / "png")
            for file, origin in zip(self._files(split), ("human", "augmented"), strict=True)
            for number, content in enumerate(_content(file))
        ]

    def identity(self, split: str) -> dict[str, Any]:
        """The digest of the two files of questions."""
        files = self._files(split)
        return {"questions": digest_of_files(files, files[0].parent)}

    def stamp(self, split: str) -> tuple[Any, ...]:
        """What changes when a file or the list of pictures does."""
        files = self._files(split)
        watched = [*files, files[0].parent / "png"]
        return tuple(
            (str(p), p.stat().st_mtime_ns, p.stat().st_size) for p in watched if p.exists()
        )

    def _files(self, split: str) -> list[Path]:
        folder = self.folder(split)
        files = [folder / name for name in self.local[split]]
        for file in files:
            if not file.is_file():
                raise UserError(
                    f"ChartQA's file {file} is missing, and without it the {split} split is not "
                    "whole: copy the official folder again."
                )
        return files


def _content(file: Path) -> Sequence[Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise UserError(
            f"{file} is no readable json file ({' '.join(str(error).split())}): copy it again."
        ) from error
    if not isinstance(content, list):
        raise UserError(f"{file} is no list of rows: copy it again.")
    return content


def _row(file: Path, number: int, content: Any, origin: str, pictures: Path) -> Row:
    if not isinstance(content, dict):
        raise UserError(f"Row {number + 1} of {file} is no row of questions: copy it again.")
    for column in ("imgname", "query", "label"):
        if content.get(column) is None:
            raise UserError(f"Row {number + 1} of {file} has no {column}: copy the file again.")
    name = str(content["imgname"])
    if Path(name).name != name:
        raise UserError(
            f"Row {number + 1} of {file} names the image {name!r}, which is no plain file name: "
            "copy the file again."
        )
    query = " ".join(str(content["query"]).split())
    return Row(pictures / name, query, str(content["label"]), origin, number)
