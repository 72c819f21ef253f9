"""Which clocks there are: 144 times x 100 faces, and the split of each.

The synthetic clocks take over the index of the Kaggle data (`clocks.csv`, CC0), which lies beside
this file in short: of each time, the faces of the validation and of the test split.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from smmd_bench.contracts import Split

TIMES = tuple((hour, minute) for hour in range(1, 13) for minute in range(0, 60, 5))
"""The label space: 144 classes, five minutes apart."""
FACES = 100
SIZES: dict[Split, int] = {"train": 11_520, "validation": 1_440, "test": 1_440}
_LABEL = re.compile(r"(\d{1,2})[_:-](\d{2})")


@dataclass(frozen=True, slots=True)
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


def time_of(label: str) -> tuple[int, int] | None:
    """Hour and minute of a label such as `1_05`; None if it is not a time of a 12-hour clock."""
    match = _LABEL.fullmatch(label.strip())
    if match is None or not match[0].isascii():
        return None
    hour, minute = int(match[1]), int(match[2])
    return (hour, minute) if 1 <= hour <= 12 and minute < 60 else None


@cache
def own_index(split: Split) -> Sequence[Clock]:
    """The clocks of a split, in the order of `in_turn`."""
    text = (files("smmd_bench.tasks") / "clock_index.csv").read_text(encoding="utf-8")
    found = []
    for line in text.splitlines()[1:]:
        label, *held_out = line.split(",")
        hour, minute = (int(part) for part in label.split(":"))
        valid, test = ({int(face) for face in part.split()} for part in held_out)
        train = set(range(FACES)) - valid - test
        faces = {"train": train, "validation": valid, "test": test}[split]
        found += [Clock(hour, minute, face) for face in faces]
    return in_turn(found)


def in_turn(clocks: Iterable[Clock]) -> list[Clock]:
    """Every class once, then every class once more, and so on: any beginning is balanced.

    The order is random, and the same for the same clocks.
    """
    groups: dict[tuple[int, int], list[Clock]] = defaultdict(list)
    for clock in sorted(clocks, key=lambda c: (c.hour, c.minute, c.face)):
        groups[clock.hour, clock.minute].append(clock)
    rng = random.Random("clock_time")
    for group in groups.values():
        rng.shuffle(group)
    rounds = max((len(group) for group in groups.values()), default=0)
    order: list[Clock] = []
    for turn in range(rounds):
        here = [group[turn] for group in groups.values() if turn < len(group)]
        rng.shuffle(here)
        order += here
    return order
