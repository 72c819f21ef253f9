"""Table 3 of the paper: Clock-Time results, each beside its published value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from smmd_bench.contracts import Artefact, Run

from ._vision import VisionTable

TABLE = VisionTable(
    task="clock_time",
    table="clock",
    columns={
        "exact_match": "Acc (%)",
        "time_gap": "Time gap (min)",
        "time_gap_wrapped": "12-h gap (min)",
        "parse_failure_rate": "Invalid (%)",
    },
    intervals=("exact_match", "time_gap"),
    beside={"exact_match": "Paper Acc", "time_gap": "Paper gap"},
)
MEANING = (
    "Acc is exact match of the time. Time gap: mean absolute deviation in minutes, as the paper "
    "defines it; 12-h gap: the same the short way round the dial (12:50 and 1:00 are 10 minutes "
    "apart, not 710). A completion that is no time (Invalid) counts as wrong, and is left out of "
    "both gaps."
)


@dataclass(frozen=True)
class ClockTable:
    """Accuracy and both time gaps by model and loss, with intervals and the difference to CE."""

    name: ClassVar[str] = "clock_table"
    title: ClassVar[str] = "Clock-Time results"
    paper: ClassVar[str] = "Table 3"

    def skip(self, run: Run) -> str | None:
        """Without a measured cell of clock_time there is no row."""
        return TABLE.skip(run)

    def build(self, run: Run) -> Artefact:
        """One row a model, task and loss; over several seeds mean ± standard deviation."""
        return TABLE.artefact(run, self.title, what="clocks", meaning=MEANING)
