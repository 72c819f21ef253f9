"""The rows of the real ChartQA: where they come from, which are kept, and what identifies them.

The official folder lies in the folder of local copies (--data-dir) as `ChartQA Dataset/SPLIT/
{SPLIT_human.json, SPLIT_augmented.json, png/}`, SPLIT one of train, val, test. A row is such as
{"imgname": "166.png", "query": "...?", "label": "62"}.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from smmd_bench.contracts import UserError, data_folder, first_number, parse_number
from smmd_bench.storage.addresses import content_digest, digest_of_files
from smmd_bench.storage.text_rows import read_rows

FOLDERS = ("ChartQA Dataset", "chartqa/ChartQA Dataset", ".")
OFFICIAL_NAMES = {"train": "train", "validation": "val", "test": "test"}
# Exponents of three digits at most: 1e999999999 would fill the memory as a fraction.
_PLAIN = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?")


@dataclass(frozen=True, slots=True)
class Row:
    """A question of ChartQA about a picture; `number` is its place in its file."""

    image: Path
    query: str
    label: str
    origin: str
    number: int


class ChartSource:
    """Where rows come from."""

    name: ClassVar[str] = "official"
    local: ClassVar[Mapping[str, str]] = OFFICIAL_NAMES

    def file(self, split: str) -> Path:
        """The first file with the questions of a split. Raises UserError if there is none."""
        return _files(split)[0]

    def rows(self, split: str) -> list[Row]:
        """The rows whose label is a plain number. Raises UserError."""
        return _read(_files(split))[0]

    def identity(self, split: str) -> dict[str, Any]:
        """Digests of questions and pictures; how many rows are kept, how many dropped, by why."""
        return _identity(_files(split))


def plain_number(label: str) -> Fraction | None:
    """The number that a label is, by `float(label)` made strict: ASCII, finite, no underscore.
    `62`, `0.57`, `-3`, `1e5` are; `62%`, `1,234`, `$5`, `nan` and "Yes" are not."""
    text = label.strip()
    if not _PLAIN.fullmatch(text) or not math.isfinite(float(text)):
        return None
    value = Fraction(text)
    # A label that `parse` reads otherwise could never be answered right.
    return value if first_number(f" {text}") == value else None


def _read(files: tuple[Path, ...]) -> tuple[list[Row], Mapping[str, int]]:
    """The rows that are kept, the human ones first, and how many are dropped, by why."""
    kept, dropped = [], Counter[str]()
    for file, origin in zip(files, ("human", "augmented"), strict=True):
        for number, row in enumerate(read_rows(file, ("query", "label"))):
            # A name in a file from elsewhere must not lead out of the folder.
            name = Path(str(row.get("imgname"))).name
            image = file.parent / "png" / name
            query = " ".join(str(row["query"]).split())
            label = str(row["label"])
            if plain_number(label) is not None:
                kept.append(Row(image, query, label, origin, number))
            elif parse_number(label) is not None:
                # a percent sign, commas, a currency, a fraction
                dropped["written otherwise"] += 1
            else:
                dropped["not a number"] += 1
    if not kept:
        raise UserError(
            f"No question in {files[0]} has a number for an answer: copy it again."
        )
    return kept, dict(sorted(dropped.items()))


@cache
def _identity(files: tuple[Path, ...]) -> dict[str, Any]:
    rows, dropped = _read(files)
    root = files[0].parent
    digest = hashlib.blake2b(digest_size=16)

    # Pictures of dropped rows do not count: they are not read.
    for image in sorted({row.image for row in rows}):
        if not image.is_file():
            raise UserError(f"The image {image} is absent: copy {root} again.")
        line = f"{image.relative_to(root)} {content_digest(image)}\n"
        digest.update(line.encode())
    return {
        "questions": digest_of_files(files, root),
        "images": digest.hexdigest(),
        "kept": len(rows),
        "dropped": dict(dropped),
    }


def _files(split: str) -> tuple[Path, ...]:
    root, name = data_folder(), OFFICIAL_NAMES[split]
    folders = [root / place / name for place in FOLDERS] if root else []
    for folder in folders:
        if (folder / f"{name}_human.json").is_file():
            return folder / f"{name}_human.json", folder / f"{name}_augmented.json"
    raise UserError(
        f"chartqa[source=official] needs ChartQA Dataset/{name}/{name}_human.json: give the folder "
        "that holds 'ChartQA Dataset' with --data-dir, or ask for chartqa[source=synthetic]."
    )
