"""Write docs/images/loss_shapes.png and loss_shapes_others.png: what each loss here charges."""

from __future__ import annotations

from pathlib import Path

from smmd_bench.reports.loss_shapes import figure

from smmd_bench.publishing.style import figure_style

IMAGES = Path(__file__).parent.parent / "docs" / "images"
FIGURES = {
    "loss_shapes.png": ["ce", "gce", "dist2", "ntl", "ntil", "smmd"],
    "loss_shapes_others.png": ["numeric_ce", "brier", "cramer", "del", "nl_ntl", "raft"],
}

if __name__ == "__main__":
    with figure_style():
        for name, losses in FIGURES.items():
            figure(losses).savefig(IMAGES / name, metadata={"Software": None})
