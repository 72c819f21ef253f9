"""Which clocks there are: 144 times x 100 faces, the split of each, and the folder of Kaggle.

The synthetic clocks take over the index of the Kaggle data (`clocks.csv`, CC0), which lies beside
this file in short: of each time, the faces of the validation and of the test split. The folder is
`train|valid|test/<h-mm>/<i>.jpg` beside `clocks.csv`.
"""

from __future__ import annotations

import hashlib
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import zip_longest
from pathlib import Path

import pandas as pd

from smmd_bench.contracts import Split, UserError, data_folder

TIMES = tuple((hour, minute) for hour in range(1, 13) for minute in range(0, 60, 5))
"""The label space: 144 classes, five minutes apart."""
FACES = 100
SIZES: dict[Split, int] = {"train": 11_520, "validation": 1_440, "test": 1_440}
INDEX = "clocks.csv"
FOLDERS: Mapping[Split, str] = {"train": "train", "validation": "valid", "test": "test"}
_PICTURE = r"/([0-9]{1,2})-([0-9]{2})/([0-9]+)\.jpg$"


@dataclass(frozen=True, order=True, slots=True)
class Clock:
    """One picture: hour 1..12, minute, face 0..99."""

    hour: int
    minute: int
    face: int

    @property
    def folder(self) -> str:
        """The name of its class as a folder: `1-05`."""
        return f"{self.hour}-{self.minute:02}"

    @property
    def target(self) -> str:
        """The time as people write it: `1:05`."""
        return f"{self.hour}:{self.minute:02}"


@cache
def own_index(split: Split) -> Sequence[Clock]:
    """The clocks of a split, in the order of `order_by_turns`."""
    text = (files("smmd_bench.tasks") / "clock_index.csv").read_text(encoding="utf-8")
    clocks = []
    for line in text.splitlines()[1:]:
        label, validation, test = line.split(",")
        hour, minute = map(int, label.split(":"))
        faces = {
            "validation": {*map(int, validation.split())},
            "test": {*map(int, test.split())},
        }
        # The file lists the two small splits: what is left of 100 faces trains.
        faces["train"] = {*range(FACES)} - faces["validation"] - faces["test"]
        clocks += [Clock(hour, minute, face) for face in faces[split]]
    return order_by_turns(clocks)


def order_by_turns(clocks: Iterable[Clock]) -> list[Clock]:
    """Every class once, then every class once more, and so on: any beginning is balanced. The order
    is random, and the same for the same clocks."""
    # Sorted first, so that the order does not follow from that of the files.
    groups: dict[tuple[int, int], list[Clock]] = defaultdict(list)
    for clock in sorted(clocks):
        groups[clock.hour, clock.minute].append(clock)
    rng = random.Random("clock_time")
    for group in groups.values():
        rng.shuffle(group)

    order: list[Clock] = []
    for turn in zip_longest(*groups.values()):
        one_of_each = [clock for clock in turn if clock is not None]
        rng.shuffle(one_of_each)
        order += one_of_each
    return order


def kaggle_folder(source: str) -> Path | None:
    """The folder with `clocks.csv` that --data-dir names; None: the clocks are synthetic. Raises
    UserError where there should be such a folder."""
    folder = None if source == "synthetic" else data_folder()
    if folder is None and source != "kaggle":
        return None
    for place in (folder / "clock_time", folder) if folder else ():
        if (place / INDEX).is_file():
            return place
    raise UserError(
        f"There is no clock_time/{INDEX} in the folder of --data-dir: put Kaggle's "
        "gpiosenka/time-image-datasetclassification there, or ask for clock_time[source=synthetic]."
    )


def kaggle_clocks(folder: Path, split: Split) -> Mapping[Clock, Path]:
    """The clocks of a split with their pictures, in the order of `order_by_turns`.

    Raises UserError for an index that cannot be read, or does not fit the pictures.
    """
    index = folder / INDEX
    try:
        rows = pd.read_csv(index)
        names = rows.loc[rows["data set"] == FOLDERS[split], "filepaths"].astype(str)
        numbers = names.str.extract(_PICTURE).astype(int).itertuples(index=False)
        paths = [folder / name for name in names]
        clocks = {Clock(*row): path for row, path in zip(numbers, paths, strict=True)}
        # An incomplete copy would be another test, with the same name in tables.
        if {*TIMES} != {(clock.hour, clock.minute) for clock in clocks}:
            raise ValueError(
                f"the {split} split has not all of the 144 times, or others"
            )
        if absent := [path for path in clocks.values() if not path.is_file()]:
            raise ValueError(f"{len(absent):,} pictures are absent, first {absent[0]}")
    except (OSError, ValueError, KeyError) as error:
        raise UserError(
            f"{index} does not fit its folder ({error}): copy the whole data set again, or ask for "
            "--task 'clock_time[source=synthetic]'."
        ) from error
    return {clock: clocks[clock] for clock in order_by_turns(clocks)}


@cache
def kaggle_digest(folder: Path, split: Split) -> str:
    """A digest of the names and bytes of a split's pictures. Raises UserError."""
    # Beside the bytes the name counts, since the folder of a picture is its answer.
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(kaggle_clocks(folder, split).values()):
        digest.update(f"{path.parent.name}/{path.name}\0".encode() + path.read_bytes())
    return digest.hexdigest()
