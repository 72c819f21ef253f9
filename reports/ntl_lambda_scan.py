"""Appendix C of the paper: accuracy against the weight of NTL, with SMMD for reference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from smmd_bench.contracts import Artefact, Run

from ._sweep import Sweep

SWEEP = Sweep(
    loss="ntl",
    parameter="lambda",
    symbol="λ",
    beside=("smmd",),
    finding=(
        "SMMD is a curve over its own λ where the run has at least three, else a band at its "
        "default. The paper prints no numbers for its scan; it finds NTL best at λ = 2.0, with "
        "Qwen2.5-1.5B on GSM8K and Qwen2.5-VL-3B on Clock-Time, and takes that as the default."
    ),
)


@dataclass(frozen=True)
class NtlLambdaScan:
    """How accuracy depends on the weight of NTL, against CE and SMMD."""

    name: ClassVar[str] = "ntl_lambda_scan"
    title: ClassVar[str] = "λ scan of NTL"
    paper: ClassVar[str] = "Figure 5 (Appendix C)"

    def skip(self, run: Run) -> str | None:
        """At least three weights of NTL must have been tried."""
        return SWEEP.skip(run)

    def build(self, run: Run) -> Artefact:
        """One panel a model and task."""
        return SWEEP.artefact(run)
