"""Appendix C of the paper: accuracy against the weight of NTL, with SMMD for reference."""

from __future__ import annotations

from ._sweep import Sweep


class NtlLambdaScan(Sweep):
    """How accuracy depends on the weight of NTL, against CE and SMMD."""

    name = "ntl_lambda_scan"
    title = "λ scan of NTL"
    paper = "Figure 5 (Appendix C)"
    loss = "ntl"
    parameter = "lambda"
    symbol = "λ"
    beside = ("smmd",)
    finding = (
        "SMMD is a curve over its own λ where the run has at least three, side by side with NTL, "
        "else a band at its default. The paper prints no numbers for its scan; it finds NTL best "
        "at λ = 2.0, with Qwen2.5-1.5B on GSM8K and Qwen2.5-VL-3B on Clock-Time, and takes that "
        "as the default."
    )
