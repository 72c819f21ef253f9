"""The Clock-Time data of Kaggle in a local folder: `train|valid|test/<h-mm>/<i>.jpg`, `clocks.csv`.

The folder is read once; the digest of its pictures is kept in the cache folder until one changes.
"""

from __future__ import annotations

import csv
import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Literal

from smmd_bench.contracts import Split, UserError, data_folder

from ._clock_index import TIMES, Clock, in_turn, time_of
from ._picture_files import kept_digest

INDEX = "clocks.csv"
FOLDERS: Mapping[Split, str] = {"train": "train", "validation": "valid", "test": "test"}
Classes = Literal["all", "there"]
_OR_THERE = ", or take the times that are there with --task 'clock_time[classes=there]'"
_COLUMNS = ("filepaths", "labels", "data set")


def local_folder() -> Path | None:
    """The folder with `clocks.csv` that `--data-dir` names; None: no such flag was given.

    Raises UserError where the flag names a folder without it.
    """
    named = data_folder()
    if named is None:
        return None
    places = [named / "clock_time", named]
    for place in places:
        if (place / INDEX).is_file():
            return place
    raise UserError(
        f"The data folder {named} has no clock_time/{INDEX}: put the Kaggle folder there, or ask "
        "for the synthetic clocks with --task 'clock_time[source=synthetic]'."
    )


def folder_clocks(folder: Path, split: Split, classes: Classes = "all") -> Mapping[Clock, Path]:
    """The clocks of a split with their pictures, in the order of `in_turn`; cached until a change.

    classes: all times, or only those that are `there`, as folders of pictures. Raises UserError for
    an index that cannot be read, rows with a mistake, times without a picture, and pictures that
    are absent: the first is named, and how many there are.
    """
    return _clocks(folder, split, classes, _stamp(folder, split))


def _stamp(folder: Path, split: Split) -> tuple[int, ...]:
    """Modification times of the index and of the folders with the split's pictures."""
    places = [folder / INDEX, *sorted((folder / FOLDERS[split]).glob("*"))]
    return tuple(place.stat().st_mtime_ns for place in places)


@lru_cache(maxsize=12)
def _clocks(folder: Path, split: Split, classes: Classes, stamp: object) -> Mapping[Clock, Path]:
    index, listed = folder / INDEX, _listed(folder, split)
    if classes == "there":
        clocks = {clock: path for clock, path in listed.items() if path.parent.is_dir()}
    else:
        clocks = listed
    lacking = [t for t in TIMES if t not in {(c.hour, c.minute) for c in clocks}]
    absent = [path for path in clocks.values() if not path.is_file()]
    or_there = _OR_THERE if any(path.is_file() for path in listed.values()) else ""
    if absent or not clocks:
        _require_same_names([*(absent or listed.values())], folder)
    if not clocks or (lacking and classes == "all"):
        hour, minute = lacking[0]
        raise UserError(
            f"{index} lists no {split} picture of {len(lacking)} of the {len(TIMES)} times, the "
            f"first of them {hour}:{minute:02}, or their folders are absent: copy the whole data "
            f"set again{or_there}."
        )
    if absent:
        raise UserError(
            f"{len(absent):,} of the {len(clocks):,} {split} pictures that {index} lists are "
            f"absent, the first of them {absent[0]}: copy the whole data set again"
            f"{'' if absent[0].parent.is_dir() else or_there}, or ask for the synthetic clocks "
            "with --task 'clock_time[source=synthetic]'."
        )
    return {clock: clocks[clock] for clock in in_turn(clocks)}


def _listed(folder: Path, split: Split) -> dict[Clock, Path]:
    """The clocks of a split by the index. Raises UserError for rows with a mistake."""
    index = folder / INDEX
    clocks: dict[Clock, Path] = {}
    faults = []
    for line, row in _rows(index):
        clock = _clock(row)
        if isinstance(clock, str):
            faults.append(f"line {line}: {clock}")
        elif row["data set"] == FOLDERS[split]:
            if clock in clocks:
                faults.append(f"line {line}: {row['filepaths']} is listed twice")
            clocks[clock] = folder / row["filepaths"]
    if faults:
        more = f" ({len(faults):,} rows of it have a mistake)" if len(faults) > 1 else ""
        raise UserError(f"{index}, {faults[0]}{more}: correct it or copy it again.")
    return clocks


def _require_same_names(absent: Sequence[Path], folder: Path) -> None:
    """Raise UserError where the first of these files is there, but for zeros in its name."""
    wanted = absent[0] if absent else folder / INDEX

    def like(place: Path, name: str) -> list[Path]:
        digits = _digits(name)
        return [p for p in sorted(place.glob("*")) if _digits(p.name) == digits]

    classes = like(wanted.parents[1], wanted.parent.name)
    found = next((file for place in classes for file in like(place, wanted.name)), None)
    if found is not None:
        raise UserError(
            f"{folder / INDEX} lists {wanted.relative_to(folder)}, and the folder has "
            f"{found.relative_to(folder)}, whose name differs in zeros alone: rename the folders "
            f"and pictures, or correct the column filepaths."
        )


def _digits(name: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall("[0-9]+", name))


def pictures_digest(folder: Path, split: Split, classes: Classes = "all") -> str:
    """A digest of the split's pictures, names and bytes. Raises UserError as `folder_clocks`."""
    return _digest(folder, split, classes, _stamp(folder, split))


@lru_cache(maxsize=12)
def _digest(folder: Path, split: Split, classes: Classes, stamp: object) -> str:
    paths = sorted(folder_clocks(folder, split, classes).values())

    def compute() -> str:
        digest = hashlib.blake2b(digest_size=16)
        for path in paths:
            digest.update(f"{path.parent.name}/{path.name}\0".encode())
            digest.update(path.read_bytes())
        return digest.hexdigest()

    return kept_digest(folder, paths, compute)


def _rows(index: Path) -> list[tuple[int, dict[str, str]]]:
    try:
        with index.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.DictReader(stream)
            rows = [(reader.line_num, row) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{index} cannot be read ({error}): copy it again.") from error
    for name in _COLUMNS:
        if not rows or rows[0][1].get(name) is None:
            raise UserError(f"{index} has no column '{name}': copy it again.")
    return rows


def _clock(row: Mapping[str, str | None]) -> Clock | str:
    """The clock of a row, or what is wrong with it."""
    label, file, split = row["labels"], row["filepaths"], row["data set"]
    time = time_of(label or "")
    if time is None:
        return f"the label '{label}' is not a time such as 1_05"
    if split not in FOLDERS.values():
        return f"the data set '{split}' is none of {', '.join(FOLDERS.values())}"
    path = PurePosixPath(file or "")
    if len(path.parts) != 3 or not path.stem.isdecimal():
        return f"'{file}' is not a picture such as train/1-05/7.jpg"
    if path.parts[0] != split or time_of(path.parts[1]) != time:
        return f"{file} is not in the folder {split}/{time[0]}-{time[1]:02} of its label"
    return Clock(*time, int(path.stem))
