"""Table 3 of the paper: Clock-Time results, each beside its published value."""

from __future__ import annotations

from ._metric_table import Column, MetricTable


class ClockTable(MetricTable):
    """Accuracy and both time gaps by model and loss, with intervals and the difference to CE."""

    name = "clock_table"
    title = "Clock-Time results"
    paper = "Table 3"
    order = 10
    tasks = ("clock_time",)
    published = "clock"
    examples = "clocks"
    columns = (
        Column(
            "exact_match", "Acc (%)", interval=True, paper="Paper Acc",
            meaning="Acc is exact match of the time; an invalid completion counts as wrong.",
        ),
        Column(
            "time_gap", "Time gap (min)", interval=True, paper="Paper gap", delta="Δ gap",
            meaning="Time gap is the mean absolute deviation, as the paper defines it, without "
            "invalid completions; the 12-h gap is the same the short way round the dial (12:50 and "
            "1:00 are 10 minutes apart, not 710).",
        ),
        Column("time_gap_wrapped", "12-h gap (min)", delta="Δ 12-h gap"),
        Column("parse_failure_rate", "Invalid (%)"),
    )  # fmt: skip
