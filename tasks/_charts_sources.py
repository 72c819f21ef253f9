"""The rows of the real ChartQA: where they come from, which are kept, and what identifies them.

The official folder lies in the folder of local copies (--data-dir) as `ChartQA Dataset/SPLIT/
{SPLIT_human.json, SPLIT_augmented.json, png/}`, SPLIT one of train, val, test. A row is such as
{"imgname": "166.png", "query": "...?", "label": "62"}. The hub's rows have the columns image,
query, label (a list of one) and human_or_machine. They are fetched once, and kept in the cache
folder as JSON lines and as pictures named by their content.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from filelock import FileLock

from smmd_bench.contracts import UserError, cache_folder, data_folder, first_number, parse_number
from smmd_bench.errors import reason_of
from smmd_bench.storage.addresses import digest_of_files
from smmd_bench.storage.data_files import read_rows
from smmd_bench.storage.files import atomic, write_text

from ._picture_files import kept_digest

FOLDERS = ("ChartQA Dataset", "chartqa/ChartQA Dataset", "chartqa", ".")
OFFICIAL_NAMES = {"train": "train", "validation": "val", "test": "test"}
REPOSITORY, REVISION = "HuggingFaceM4/ChartQA", "main"
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
    """Where rows come from. `local` names the files of a split; `remedy` ends an error."""

    name: ClassVar[str]
    remedy: ClassVar[str]
    local: ClassVar[Mapping[str, tuple[str, ...]]]

    def files(self, split: str) -> list[Path]:
        """The files with the questions of a split. Raises UserError if one cannot be had."""
        raise NotImplementedError

    def rows(self, split: str) -> Iterable[Row]:
        """The rows of a split in the order of its files."""
        raise NotImplementedError

    def file(self, split: str) -> Path:
        """The first file of a split."""
        return self.files(split)[0]


def plain_number(label: str) -> Fraction | None:
    """The number that a label is, by `float(label)` made strict: ASCII, finite, no underscore.

    `62`, `0.57`, `-3`, `1e5` are; `62%`, `1,234`, `$5`, `nan` and "Yes" are not.
    """
    text = label.strip()
    if not _PLAIN.fullmatch(text) or not math.isfinite(float(text)):
        return None
    value = Fraction(text)
    return value if first_number(f" {text}") == value else None


def numeric_rows(source: ChartSource, split: str) -> tuple[Row, ...]:
    """The rows whose label is a plain number. Raises UserError if there is none."""
    return _read(source, split, _stamp(source, split))[0]


def identity(source: ChartSource, split: str) -> dict[str, Any]:
    """Digests of questions and pictures, how many rows are kept, and how many dropped, by why."""
    files, stamp = source.files(split), _stamp(source, split)
    kept, dropped = _read(source, split, stamp)
    return {
        "questions": digest_of_files(files, files[0].parent),
        "images": _digest(source, split, stamp),
        "kept": len(kept),
        "dropped": dict(dropped),
    }


def pictures(source: ChartSource, rows: Sequence[Row]) -> list[Path]:
    """The pictures of rows, each once. Raises UserError if any is absent."""
    files = sorted({row.image for row in rows})
    if absent := [file for file in files if not file.is_file()]:
        raise UserError(
            f"The image {absent[0]} is absent ({len(absent):,} of the {len(files):,} images "
            f"that the questions name are): {source.remedy}."
        )
    return files


def _stamp(source: ChartSource, split: str) -> tuple[Any, ...]:
    """What changes when a file of questions or the list of pictures beside it does."""
    files = source.files(split)
    watched = [*files, files[0].parent / "png"]
    return tuple((p, p.stat().st_mtime_ns, p.stat().st_size) for p in watched if p.exists())


@lru_cache(maxsize=12)
def _read(
    source: ChartSource, split: str, stamp: object
) -> tuple[tuple[Row, ...], Mapping[str, int]]:
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
    return tuple(kept), dict(sorted(dropped.items()))


@lru_cache(maxsize=12)
def _digest(source: ChartSource, split: str, stamp: object) -> str:
    """Of the contents and names of a split's pictures."""
    root = source.file(split).parent
    files = pictures(source, numeric_rows(source, split))

    def content(file: Path) -> bytes:
        digest = hashlib.blake2b(file.read_bytes(), digest_size=16).hexdigest()
        return f"{file.relative_to(root)} {digest}\n".encode()

    return kept_digest(root, files, content)


class OfficialCharts(ChartSource):
    """Two files of questions a split, the human ones first."""

    name = "official"
    remedy = "copy the official folder again"
    local: ClassVar[Mapping[str, tuple[str, ...]]] = {
        ours: (f"{theirs}/{theirs}_human.json", f"{theirs}/{theirs}_augmented.json")
        for ours, theirs in OFFICIAL_NAMES.items()
    }

    def files(self, split: str) -> list[Path]:
        """Raises UserError if the folder or one of its two files is missing."""
        given = data_folder()
        if given is None:
            raise UserError(
                "chartqa[source=official] needs the folder that holds 'ChartQA Dataset': give it "
                "with --data-dir, or ask for drawn charts with chartqa[source=synthetic]."
            )
        for folder in (given / name for name in FOLDERS):
            files = [folder / name for name in self.local[split]]
            if missing := [file for file in files if not file.is_file()]:
                if len(missing) < len(files):
                    raise UserError(f"{missing[0]} is missing: {self.remedy}.")
                continue
            return files
        raise UserError(
            f"The data folder {given} has no ChartQA Dataset/{self.local[split][0]}: put the "
            "official folder there, or ask for drawn charts with chartqa[source=synthetic]."
        )

    def rows(self, split: str) -> Iterator[Row]:
        """The rows of both files."""
        for file, origin in zip(self.files(split), ("human", "augmented"), strict=True):
            for number, row in enumerate(read_rows(file, ("imgname", "query", "label"))):
                image = file.parent / "png" / Path(str(row["imgname"])).name
                query = " ".join(str(row["query"]).split())
                yield Row(image, query, str(row["label"]), origin, number)


class HubCharts(ChartSource):
    """The hub's copy; what was fetched is identified by its content, not by its revision."""

    name = "hub"
    remedy = f"delete the cache folder's data/chartqa/{REVISION} to have it fetched again"
    local: ClassVar[Mapping[str, tuple[str, ...]]] = {
        split: (f"{split}.jsonl",) for split in OFFICIAL_NAMES
    }

    def files(self, split: str) -> list[Path]:
        """The file of a split, fetched where it is not in the cache. Raises UserError."""
        file = (cache_folder() / "data" / "chartqa" / REVISION / f"{split}.jsonl").absolute()
        file.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(file.with_suffix(".lock")):
            if not file.is_file():
                _fetch(file, split)
        return [file]

    def rows(self, split: str) -> Iterator[Row]:
        """The rows of the file of a split."""
        file = self.file(split)
        for number, row in enumerate(read_rows(file)):
            yield Row(file.parent / row["image"], row["query"], row["label"], row["origin"], number)


def _fetch(file: Path, split: str) -> None:
    from datasets import Image, load_dataset

    try:
        found = load_dataset(REPOSITORY, split=OFFICIAL_NAMES[split], revision=REVISION)
        human = found.features["human_or_machine"].str2int("human")
        rows = [
            {
                "image": _keep_picture(row["image"], file.parent),
                "query": " ".join(str(row["query"]).split()),
                "label": ", ".join(map(str, row["label"])),
                "origin": "human" if row["human_or_machine"] == human else "augmented",
            }
            for row in found.cast_column("image", Image(decode=False))
        ]
    except Exception as error:  # whatever lies between here and the hub
        raise UserError(
            f"The data {REPOSITORY} cannot be fetched from the hub ({reason_of(error)}): run "
            "`smmd-bench prepare 'chartqa[source=hub]'` where there is a network, or give a folder "
            "that holds 'ChartQA Dataset' with --data-dir."
        ) from error
    write_text(file, "".join(f"{json.dumps(row)}\n" for row in rows))


def _keep_picture(image: Mapping[str, Any], folder: Path) -> str:
    """Write the picture's bytes as they are; returns its name within the folder."""
    from PIL import Image

    content = image["bytes"] or Path(image["path"]).read_bytes()
    with Image.open(io.BytesIO(content)) as picture:
        ending = str(picture.format).lower()
    digest = hashlib.blake2b(content, digest_size=16).hexdigest()
    name = f"images/{digest[:2]}/{digest}.{ending}"
    if not (folder / name).is_file():
        with atomic(folder / name) as temporary:
            temporary.write_bytes(content)
    return name
