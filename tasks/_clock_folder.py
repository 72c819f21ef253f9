"""The Clock-Time data of Kaggle in a local folder: `train|valid|test/<h-mm>/<i>.jpg`, `clocks.csv`.

The folder is read and every picture opened once; what was found is kept in the cache folder until
a file changes, so that no training meets a broken picture in the middle of an epoch.
"""

from __future__ import annotations

import csv
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from smmd_bench.addresses import address, cache_folder
from smmd_bench.contracts import Split
from smmd_bench.data_files import VARIABLE
from smmd_bench.errors import UserError
from smmd_bench.results.files import read_json, write_json
from smmd_bench.vision.images import read_image

from ._clock_index import TIMES, Clock, in_turn, time_of

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


def folder_clocks(folder: Path, split: Split) -> dict[Clock, Path]:
    """The clocks of a split with their pictures, in the order of `in_turn`.

    Raises UserError for an index that cannot be read, a label that is no time, a class without a
    picture, and pictures that are absent or broken: each is named, and how many more there are.
    """
    rows = _rows(folder / INDEX, split)
    clocks: dict[Clock, Path] = {}
    for line, row in rows:
        clock, path = _clock(folder, line, row)
        clocks[clock] = path
    missing = [t for t in TIMES if t not in {(c.hour, c.minute) for c in clocks}]
    if missing:
        hour, minute = missing[0]
        raise UserError(
            f"{folder / INDEX} lists no {split} picture of {len(missing)} of the {len(TIMES)} "
            f"times, the first of them {hour}:{minute:02}: copy the whole data set again."
        )
    absent = [path for path in clocks.values() if not path.is_file()]
    if absent:
        raise UserError(
            f"{len(absent):,} of the {len(clocks):,} {split} pictures that {folder / INDEX} lists "
            f"are absent, the first of them {absent[0]}: copy the whole data set again, or ask for "
            "the synthetic clocks with --task 'clock_time[source=synthetic]'."
        )
    return {clock: clocks[clock] for clock in in_turn(clocks)}


def checked_digest(clocks: Mapping[Clock, Path]) -> str:
    """A digest of the pictures' names and bytes, all of which open.

    Raises UserError for broken pictures.
    """
    paths = sorted(clocks.values())
    stamps = [(str(p.resolve()), (s := p.stat()).st_size, s.st_mtime_ns) for p in paths]
    kept = cache_folder() / "clock_time" / "folders" / f"{address({'files': stamps})}.json"
    known = read_json(kept)
    if known is not None:
        return str(known["digest"])
    digest = hashlib.blake2b(digest_size=16)
    broken: list[UserError] = []
    for path in paths:
        digest.update(f"{path.parent.name}/{path.name}\0".encode())
        digest.update(path.read_bytes())
        try:
            read_image(path)
        except UserError as error:
            broken.append(error)
    if broken:
        more = f" ({len(broken) - 1:,} more like it)" if len(broken) > 1 else ""
        raise UserError(f"{broken[0]}{more}")
    write_json(kept, {"digest": digest.hexdigest()})
    return digest.hexdigest()


def _rows(index: Path, split: Split) -> list[tuple[int, dict[str, str]]]:
    """The rows of a split with the numbers of their lines."""
    try:
        with index.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.DictReader(stream)
            rows = [(reader.line_num, row) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{index} cannot be read ({error}): copy it again.") from error
    for name in _COLUMNS:
        if not rows or rows[0][1].get(name) is None:
            raise UserError(f"{index} has no column '{name}': copy it again.")
    return [(line, row) for line, row in rows if row["data set"] == FOLDERS[split]]


def _clock(folder: Path, line: int, row: Mapping[str, str]) -> tuple[Clock, Path]:
    path = folder / (row["filepaths"] or "")
    time = time_of(row["labels"] or "")
    if time is None:
        raise UserError(
            f"{folder / INDEX}, line {line}: the label '{row['labels']}' is not a time such as "
            "1_05: correct the line or copy the file again."
        )
    if time_of(path.parent.name) != time or not path.stem.isdecimal():
        raise UserError(
            f"{folder / INDEX}, line {line}: the picture {row['filepaths']} is not in the folder "
            f"of its label, {time[0]}-{time[1]:02}: correct the line or copy the file again."
        )
    return Clock(*time, int(path.stem)), path
