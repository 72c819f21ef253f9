"""Table 6 of the paper: kernels that know the values against kernels that do not, MMD alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from smmd_bench.contracts import Artefact, Run

from ._ablation import Ablation

TABLE = Ablation(
    table="kernel_ablation",
    heading="Kernel",
    meaning=(
        "The MMD term alone, whose kernel is made from the distances of the values, from the "
        "values shuffled among the tokens, or at random: smmd[term=mmd], and the same with "
        "kernel=shuffled and kernel=random."
    ),
    usual=("ce", "smmd[term=mmd]"),
)
ROWS = {
    "ce": "none (CE)",
    "smmd[kernel=random,term=mmd]": "random PSD",
    "smmd[kernel=shuffled,term=mmd]": "shuffled values",
    "smmd[term=mmd]": "distances",
}


@dataclass(frozen=True)
class KernelTable:
    """Accuracy by what the kernel of the MMD term is made from, with the difference to CE."""

    name: ClassVar[str] = "kernel_table"
    title: ClassVar[str] = "Kernel structure, MMD term alone"
    paper: ClassVar[str] = "Table 6"

    def skip(self, run: Run) -> str | None:
        """At least one kernel must be blind to the values."""
        return TABLE.skip(run, ROWS)

    def build(self, run: Run) -> Artefact:
        """One row a kernel; tasks are columns."""
        return TABLE.artefact(run, self.title, ROWS)
