"""Figure 3 (a) of the paper: accuracy against the bandwidth of SMMD's kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from smmd_bench.contracts import Artefact, Run

from ._sweep import Sweep

SWEEP = Sweep(
    loss="smmd",
    parameter="sigma",
    symbol="σ",
    weight=False,
    finding=(
        "The paper prints no numbers for its Figure 3 (a); it finds accuracy highest near σ = 2.0, "
        "on Qwen2.5-1.5B and Qwen2.5-VL-3B."
    ),
)


@dataclass(frozen=True)
class SigmaSensitivity:
    """How accuracy depends on a single bandwidth, against CE."""

    name: ClassVar[str] = "sigma_sensitivity"
    title: ClassVar[str] = "Sensitivity to σ"
    paper: ClassVar[str] = "Figure 3 (a)"

    def skip(self, run: Run) -> str | None:
        """At least three bandwidths must have been tried."""
        return SWEEP.skip(run)

    def build(self, run: Run) -> Artefact:
        """One panel a model and task."""
        return SWEEP.artefact(run)
