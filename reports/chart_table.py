"""Table 4 of the paper: chart question answering results, each beside its published value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from smmd_bench.contracts import Artefact, Run

from ._vision import VisionTable

TABLE = VisionTable(
    task="chartqa",
    table="chartqa",
    columns={
        "exact_match": "Acc (%)",
        "relaxed_accuracy": "Relaxed (%)",
        "relaxed_accuracy_lm_eval": "lm-eval relaxed",
        "parse_failure_rate": "Parse fail (%)",
    },
    intervals=("exact_match", "relaxed_accuracy"),
    beside={"exact_match": "Paper Acc"},
)
MEANING = (
    "Acc is exact match by value, as in the paper; Relaxed is the field's accuracy, which takes "
    "an answer within 5 % of the truth, and lm-eval relaxed is that as lm-eval reads numbers (not "
    '"~5"). A completion without a number counts as wrong in all.'
)


@dataclass(frozen=True)
class ChartTable:
    """Exact and relaxed accuracy by model and loss, with intervals and the difference to CE."""

    name: ClassVar[str] = "chart_table"
    title: ClassVar[str] = "Chart question answering results"
    paper: ClassVar[str] = "Table 4"

    def skip(self, run: Run) -> str | None:
        """Without a measured cell of chartqa there is no row."""
        return TABLE.skip(run)

    def build(self, run: Run) -> Artefact:
        """One row a model, task and loss; over several seeds mean ± standard deviation."""
        return TABLE.artefact(run, self.title, what="charts", meaning=MEANING)
