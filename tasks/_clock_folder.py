"""The Clock-Time data of Kaggle in a local folder: `train|valid|test/<h-mm>/<i>.jpg`, `clocks.csv`.

The folder is read once; the digest of its pictures is kept in the cache folder until one changes.
"""

from __future__ import annotations

import csv
import hashlib
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path, PurePosixPath

from smmd_bench.contracts import Split, UserError
from smmd_bench.storage.data_files import VARIABLE

from ._clock_index import TIMES, Clock, in_turn, time_of
from ._picture_files import kept_digest

INDEX = "clocks.csv"
FOLDERS: Mapping[Split, str] = {"train": "train", "validation": "valid", "test": "test"}
_COLUMNS = ("filepaths", "labels", "data set")


def local_folder() -> Path | None:
    """The folder with `clocks.csv` that `--data-dir` names; None: no such flag was given.

    Raises UserError where the flag names a folder without it.
    """
    named = os.environ.get(VARIABLE)
    if not named:
        return None
    places = [Path(named) / "clock_time", Path(named)]
    for place in places:
        if (place / INDEX).is_file():
            return place
    raise UserError(
        f"The data folder {named} has no clock_time/{INDEX}: put the Kaggle folder there, or ask "
        "for the synthetic clocks with --task 'clock_time[source=synthetic]'."
    )


def folder_clocks(folder: Path, split: Split) -> Mapping[Clock, Path]:
    """The clocks of a split with their pictures, in the order of `in_turn`; cached until a change.

    Raises UserError for an index that cannot be read, rows with a mistake, times without a picture,
    and pictures that are absent: the first is named, and how many there are.
    """
    return _clocks(folder, split, _stamp(folder, split))


def _stamp(folder: Path, split: Split) -> tuple[int, ...]:
    """Modification times of the index and of the folders with the split's pictures."""
    places = [folder / INDEX, *sorted((folder / FOLDERS[split]).glob("*"))]
    return tuple(place.stat().st_mtime_ns for place in places)


@lru_cache(maxsize=12)
def _clocks(folder: Path, split: Split, stamp: object) -> Mapping[Clock, Path]:
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
    missing = [t for t in TIMES if t not in {(c.hour, c.minute) for c in clocks}]
    if missing:
        hour, minute = missing[0]
        raise UserError(
            f"{index} lists no {split} picture of {len(missing)} of the {len(TIMES)} times, the "
            f"first of them {hour}:{minute:02}: copy the whole data set again."
        )
    absent = [path for path in clocks.values() if not path.is_file()]
    if absent:
        raise UserError(
            f"{len(absent):,} of the {len(clocks):,} {split} pictures that {index} lists are "
            f"absent, the first of them {absent[0]}: copy the whole data set again, or ask for the "
            "synthetic clocks with --task 'clock_time[source=synthetic]'."
        )
    return {clock: clocks[clock] for clock in in_turn(clocks)}


def pictures_digest(folder: Path, split: Split) -> str:
    """A digest of the split's pictures, names and bytes. Raises UserError as `folder_clocks`."""
    return _digest(folder, split, _stamp(folder, split))


@lru_cache(maxsize=12)
def _digest(folder: Path, split: Split, stamp: object) -> str:
    paths = sorted(folder_clocks(folder, split).values())

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
