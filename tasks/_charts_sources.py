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
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal

from filelock import FileLock

from smmd_bench.contracts import UserError, cache_folder, data_folder, first_number, parse_number
from smmd_bench.errors import reason_of
from smmd_bench.storage.addresses import content_digest, digest_of_files
from smmd_bench.storage.data_files import read_rows
from smmd_bench.storage.files import atomic, write_text

FOLDERS = ("ChartQA Dataset", "chartqa/ChartQA Dataset", ".")
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


@dataclass(frozen=True)
class ChartSource:
    """Where rows come from. What was fetched from the hub is identified by its content, too."""

    name: Literal["official", "hub"]
    local: ClassVar[Mapping[str, str]] = OFFICIAL_NAMES

    def file(self, split: str) -> Path:
        """The first file with the questions of a split. Raises UserError if it cannot be had."""
        return self._files(split)[0]

    def rows(self, split: str) -> list[Row]:
        """The rows whose label is a plain number. Raises UserError."""
        return _read(self._files(split))[0]

    def identity(self, split: str) -> dict[str, Any]:
        """Digests of questions and pictures; how many rows are kept, how many dropped, by why."""
        return _identity(self._files(split))

    def _files(self, split: str) -> tuple[Path, ...]:
        return _official_files(split) if self.name == "official" else (_hub_file(split),)


def plain_number(label: str) -> Fraction | None:
    """The number that a label is, by `float(label)` made strict: ASCII, finite, no underscore.

    `62`, `0.57`, `-3`, `1e5` are; `62%`, `1,234`, `$5`, `nan` and "Yes" are not.
    """
    text = label.strip()
    if not _PLAIN.fullmatch(text) or not math.isfinite(float(text)):
        return None
    value = Fraction(text)
    return value if first_number(f" {text}") == value else None


def _read(files: tuple[Path, ...]) -> tuple[list[Row], Mapping[str, int]]:
    """The rows that are kept, the human ones first, and how many are dropped, by why."""
    kept, dropped = [], Counter[str]()
    for file, origin in zip(files, ("human", "augmented"), strict=False):
        for number, row in enumerate(read_rows(file, ("query", "label"))):
            image = row.get("image") or f"png/{Path(str(row.get('imgname'))).name}"
            query, label = " ".join(str(row["query"]).split()), str(row["label"])
            if plain_number(label) is not None:
                own = row.get("origin", origin)
                kept.append(Row(file.parent / image, query, label, own, number))
            else:  # written otherwise: with a percent sign, commas, a currency, or as a fraction
                written = parse_number(label) is not None
                dropped["written otherwise" if written else "not a number"] += 1
    if not kept:
        raise UserError(f"No question in {files[0]} has a number for an answer: copy it again.")
    return kept, dict(sorted(dropped.items()))


@cache
def _identity(files: tuple[Path, ...]) -> dict[str, Any]:
    (kept, dropped), root = _read(files), files[0].parent
    images = hashlib.blake2b(digest_size=16)
    for image in sorted({row.image for row in kept}):
        if not image.is_file():
            raise UserError(
                f"The image {image} is absent: copy {root} again, or delete it where it was "
                "fetched from the hub."
            )
        images.update(f"{image.relative_to(root)} {content_digest(image)}\n".encode())
    questions = digest_of_files(files, root)
    counts = {"kept": len(kept), "dropped": dict(dropped)}
    return {"questions": questions, "images": images.hexdigest(), **counts}


def _official_files(split: str) -> tuple[Path, ...]:
    given, name = data_folder(), OFFICIAL_NAMES[split]
    for folder in [given / place / name for place in FOLDERS] if given else ():
        if (folder / f"{name}_human.json").is_file():
            return folder / f"{name}_human.json", folder / f"{name}_augmented.json"
    raise UserError(
        f"chartqa[source=official] needs ChartQA Dataset/{name}/{name}_human.json: give the folder "
        "that holds 'ChartQA Dataset' with --data-dir, or ask for drawn charts with "
        "chartqa[source=synthetic]."
    )


def _hub_file(split: str) -> Path:
    """The file of a split, fetched where it is not in the cache."""
    file = (cache_folder() / "data" / "chartqa" / REVISION / f"{split}.jsonl").absolute()
    file.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(file.with_suffix(".lock")):
        if not file.is_file():
            try:
                rows = _fetch(file.parent, OFFICIAL_NAMES[split])
            except Exception as error:  # whatever lies between here and the hub
                raise UserError(
                    f"The data {REPOSITORY} cannot be fetched from the hub ({reason_of(error)}): "
                    "run `smmd-bench prepare 'chartqa[source=hub]'` where there is a network, or "
                    "give a folder that holds 'ChartQA Dataset' with --data-dir."
                ) from error
            write_text(file, "".join(f"{json.dumps(row)}\n" for row in rows))
    return file


def _fetch(folder: Path, split: str) -> list[dict[str, str]]:
    from datasets import Image, load_dataset

    found = load_dataset(REPOSITORY, split=split, revision=REVISION)
    human = found.features["human_or_machine"].str2int("human")
    return [
        {
            "image": _keep_picture(row["image"], folder),
            "query": " ".join(str(row["query"]).split()),
            "label": ", ".join(map(str, row["label"])),
            "origin": "human" if row["human_or_machine"] == human else "augmented",
        }
        for row in found.cast_column("image", Image(decode=False))
    ]


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
