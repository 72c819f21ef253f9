"""How far off the read times are: the paper's Time Gap, and the gap round the dial.

A time is minutes, h*60 + m with h from 1 to 12, so that 12:50 and 1:00 are 710 minutes apart by
the plain deviation and 10 by the dial. The tests compare both with scikit-learn and a slow loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from smmd_bench.contracts import MeanAbsoluteError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

HALF_DAY = 720
"""Minutes that the hour hand needs to come round."""


class TimeGap(MeanAbsoluteError):  # noqa: N818
    """Mean of |parsed - answer| in minutes over the completions that are a time, as in the paper.

    Other completions are left out here and counted by the parse-failure rate.
    """

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
        forward = np.mod(columns[0], HALF_DAY)
        return np.asarray(np.mean(np.minimum(forward, HALF_DAY - forward), axis=axis))
