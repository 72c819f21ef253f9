"""Table 5 of the paper: the MMD and the smoothness term of SMMD, each alone and both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from smmd_bench.contracts import Artefact, Run

from ._ablation import Ablation

TABLE = Ablation(
    table="ablation",
    heading="Terms",
    meaning=(
        "SMMD is the sum of a squared MMD and a smoothness term; with neither it is CE. MMD is "
        "smmd[term=mmd], smoothness smmd[term=smooth], both smmd."
    ),
    usual=("ce", "smmd"),
)
ROWS = {
    "ce": "none (CE)",
    "smmd[term=mmd]": "MMD",
    "smmd[term=smooth]": "smoothness",
    "smmd": "MMD + smoothness",
}


@dataclass(frozen=True)
class TermsTable:
    """Accuracy with each term of SMMD on and off, by task, with the difference to CE."""

    name: ClassVar[str] = "terms_table"
    title: ClassVar[str] = "Effect of the MMD and smoothness terms"
    paper: ClassVar[str] = "Table 5"

    def skip(self, run: Run) -> str | None:
        """At least one term must have been left out."""
        return TABLE.skip(run, ROWS)

    def build(self, run: Run) -> Artefact:
        """One row a set of terms; tasks are columns."""
        return TABLE.artefact(run, self.title, ROWS)
