"""Figure 3 (b) of the paper: accuracy against the weight of SMMD."""

from __future__ import annotations

from ._sweep import Sweep


class LambdaSensitivity(Sweep):
    """How accuracy depends on the weight of SMMD, against CE."""

    name = "lambda_sensitivity"
    title = "Sensitivity to λ"
    paper = "Figure 3 (b)"
    loss = "smmd"
    parameter = "lambda"
    symbol = "λ"
    finding = (
        "The paper prints no numbers for its Figure 3 (b); it finds accuracy above that of λ = 0 "
        "over a broad range and highest near λ = 3, on Qwen2.5-1.5B and Qwen2.5-VL-3B."
    )
