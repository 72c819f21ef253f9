"""Write docs/images/loss_shapes.png: what each of the six first-party losses charges."""

from __future__ import annotations

from pathlib import Path

from smmd_bench.reports.loss_shapes import figure

from smmd_bench.publishing.style import figure_style

TARGET = Path(__file__).parent.parent / "docs" / "images" / "loss_shapes.png"
LOSSES = ["ce", "gce", "dist2", "ntl", "ntil", "smmd"]

if __name__ == "__main__":
    with figure_style():
        figure(LOSSES).savefig(TARGET, metadata={"Software": None})
