"""Figure 3 (b) of the paper: accuracy against the weight of SMMD."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from smmd_bench.contracts import Artefact, Run

from ._sweep import Sweep

SWEEP = Sweep(
    loss="smmd",
    parameter="lambda",
    symbol="λ",
    finding=(
        "The paper prints no numbers for its Figure 3 (b); it finds accuracy above that of λ = 0 "
        "over a broad range and highest near λ = 3, on Qwen2.5-1.5B and Qwen2.5-VL-3B."
    ),
)


@dataclass(frozen=True)
class LambdaSensitivity:
    """How accuracy depends on the weight of SMMD, against CE."""

    name: ClassVar[str] = "lambda_sensitivity"
    title: ClassVar[str] = "Sensitivity to λ"
    paper: ClassVar[str] = "Figure 3 (b)"

    def skip(self, run: Run) -> str | None:
        """At least three weights must have been tried."""
        return SWEEP.skip(run)

    def build(self, run: Run) -> Artefact:
        """One panel a model and task."""
        return SWEEP.artefact(run)
