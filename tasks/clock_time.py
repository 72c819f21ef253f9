"""Clock-Time: read the time from a picture of a clock (the paper's section 4, Table 3).

One example: a clock, "Question: What time does the clock show, as h:mm?\\nAnswer:" -> " 1:05".
144 times five minutes apart, each on 100 faces: 11,520 / 1,440 / 1,440 pictures of 224 x 224.

Source: the folder of Kaggle's gpiosenka/time-image-datasetclassification (CC0) by --data-dir, or,
without one, synthetic clocks of our own with the same times, sizes and index. Quirks: Kaggle turns
whole pictures by quarter turns, so that 3:00 can look like 6:15 on a face without numerals. A
minute such as "05" is not a canonical integer: a token of it is outside V_num.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from smmd_bench.contracts import (
    Answer,
    ExactMatch,
    Example,
    MeanAbsoluteError,
    Metric,
    Modality,
    ParseFailureRate,
    Split,
    TruncationRate,
    parameter,
)

from ._clock_data import (
    FACES,
    SIZES,
    Clock,
    kaggle_clocks,
    kaggle_digest,
    kaggle_folder,
    own_index,
)
from ._clock_drawing import drawing_version, picture_files, task_face

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

PROMPT = "Question: What time does the clock show, as h:mm?\nAnswer:"
HALF_DAY = 720
"""Minutes that the hour hand needs to come round."""
FORMAT = 1
"""Version of prompts and targets; `ClockTime.version` is that of reading answers."""
_TIME = re.compile(r"([0-9]{1,2}):([0-9]{2})")
_DIGITS = re.compile(r"(?<!\d)\d++(?:[-–—~:.,'’/]\d++)*+")
"""Numbers and what adjoins them: 3:30:15 and 3:30-4:00 are no time, and neither is a part."""


class TimeGap(MeanAbsoluteError):  # noqa: N818
    """Mean of |parsed - answer| in minutes over the completions that are a time."""

    name: ClassVar[str] = "time_gap"
    version: ClassVar[int] = 1
    label: ClassVar[str] = "Time gap (min)"


class TimeGapWrapped(MeanAbsoluteError):  # noqa: N818
    """The same mean with each gap taken the short way round the dial: min(d, 720 - d)."""

    name: ClassVar[str] = "time_gap_wrapped"
    version: ClassVar[int] = 1
    label: ClassVar[str] = "12-h gap (min)"

    def statistic(self, *columns: Array, axis: int = -1) -> Array:
        """Mean along `axis` of `error` wrapped to at most 360 minutes."""
        # A dial shows no half of the day, so that 11:55 and 0:05 are ten minutes apart.
        forward = np.mod(columns[0], HALF_DAY)
        return np.asarray(np.mean(np.minimum(forward, HALF_DAY - forward), axis=axis))


@dataclass(frozen=True)
class ClockTime:
    """The time on a clock's face, in hours and minutes."""

    name: ClassVar[str] = "clock_time"
    version: ClassVar[int] = 2
    modality: ClassVar[Modality] = Modality.VISION
    max_new_tokens: ClassVar[int] = 16
    finite: ClassVar[bool] = True
    paper_sizes: ClassVar[Mapping[Split, int]] = SIZES

    source: Literal["auto", "synthetic", "kaggle"] = parameter(
        "auto", "auto: Kaggle's pictures where --data-dir is given, else synthetic ones"
    )

    @property
    def licence(self) -> str:
        """Of the pictures in use."""
        if kaggle_folder(self.source) is None:
            return "synthetic clocks, drawn here"
        return "CC0 (Kaggle, gpiosenka/time-image-datasetclassification)"

    @property
    def notes(self) -> tuple[str, ...]:
        """That the clocks are not those of Kaggle, where nobody asked for others."""
        if self.source == "auto" and kaggle_folder(self.source) is None:
            return (
                "Clocks are drawn here: Kaggle's own need their folder in --data-dir.",
            )
        return ()

    def resolved(self) -> ClockTime:
        """With the source that `auto` means, where that is a folder: for a spec that is kept."""
        if kaggle_folder(self.source) is None:
            return self
        return replace(self, source="kaggle")

    def examples(
        self, split: Split, seed: int, limit: int | None = None
    ) -> Sequence[Example]:
        """The first `limit` clocks; any beginning has all times alike often. Raises UserError."""
        folder = kaggle_folder(self.source)
        if folder is not None:
            clock_pictures = [*kaggle_clocks(folder, split).items()]
            return [_example(clock, path, {}) for clock, path in clock_pictures[:limit]]
        clocks = own_index(split)[:limit]
        numerals = {face: task_face(seed, face).numerals for face in range(FACES)}
        pictures = picture_files(clocks, seed)
        return [
            _example(clock, path, {"numerals": numerals[clock.face]})
            for clock, path in zip(clocks, pictures, strict=True)
        ]

    def identity(self, split: Split, seed: int) -> Mapping[str, Any]:
        """Drawing version and seed of synthetic clocks; the digest of Kaggle's pictures."""
        identity = {
            "task": self.name,
            "split": split,
            "format": FORMAT,
            "prompt": PROMPT,
        }
        folder = kaggle_folder(self.source)
        if folder is None:
            # `rotate` is of a parameter that is gone: addresses of runs have it.
            drawing = {"generator": drawing_version(), "seed": seed, "rotate": False}
            return {**identity, "source": "synthetic", **drawing}
        count = len(kaggle_clocks(folder, split))
        digest = kaggle_digest(folder, split)
        return {**identity, "source": "kaggle", "digest": digest, "kept": count}

    def parse(self, completion: str) -> Answer | None:
        """The first number with a colon as minutes, where it is a time of a 12-hour clock."""
        # A number without a colon, such as a date, is passed over; 3 alone is no time.
        candidates = (text for text in _DIGITS.findall(completion) if ":" in text)
        match = _TIME.fullmatch(next(candidates, ""))
        if match is None:
            return None
        hour, minute = map(int, match.groups())
        is_time = 1 <= hour <= 12 and minute < 60
        return Answer(Fraction(60 * hour + minute)) if is_time else None

    def metrics(self) -> Sequence[Metric]:
        """Exact match selects; the gaps leave out what is not a time, whose rate is beside."""
        return (
            ExactMatch(),
            TimeGap(),
            TimeGapWrapped(),
            ParseFailureRate(),
            TruncationRate(),
        )


def _example(clock: Clock, picture: Path, more: Mapping[str, str]) -> Example:
    return Example(
        uid=f"clock_time-{clock.folder}-{clock.face}",
        prompt=PROMPT,
        target=f" {clock.target}",
        answer=Answer(Fraction(60 * clock.hour + clock.minute)),
        images=(picture,),
        attributes={
            "hour": clock.hour,
            "minute": clock.minute,
            "face": clock.face,
            **more,
        },
    )
