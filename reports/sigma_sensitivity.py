"""Figure 3 (a) of the paper: accuracy against the bandwidth of SMMD's kernel."""

from __future__ import annotations

from ._sweep import Sweep


class SigmaSensitivity(Sweep):
    """How accuracy depends on a single bandwidth, against CE."""

    name = "sigma_sensitivity"
    title = "Sensitivity to σ"
    paper = "Figure 3 (a)"
    loss = "smmd"
    parameter = "sigma"
    symbol = "σ"
    weight = False
    finding = (
        "The paper prints no numbers for its Figure 3 (a); it finds accuracy highest near σ = 2.0, "
        "on Qwen2.5-1.5B and Qwen2.5-VL-3B."
    )
