"""Draw the pictures of the pages: python -m scripts.draw_docs [--run RUN] [FOLDER]

FOLDER is docs/images if none is named. The pictures of the home page and of docs/start.md are those
of the run of `make demo`, and are drawn only of the folder that --run names. The pictures of
experiments/ are reports of its archives, as its pages say.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import torch
from PIL import Image
from smmd_bench.reports.loss_shapes import draw_curve, find_penalties

from smmd_bench import read_run
from smmd_bench.plugin_system.registry import load, load_task, own_points
from smmd_bench.publishing.style import (
    GREY,
    WIDTH,
    figure_style,
    folded,
    loss_label,
    loss_styles,
    new_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

IMAGES = Path(__file__).parent.parent / "docs" / "images"
PAPER = ("ce", "gce", "dist2", "ntl", "ntil", "smmd")
CONTROLS = ("numeric_ce", "numeric_dft", "brier", "cramer")
TARGETS = {10: 3, 1000: 300}
NEAR = 10
"""How far the axis of N = 1000 is linear to either side of the target."""
MARKED = {*range(NEAR + 1), 15, 20, 30, 50, 100, 200, 300, 500, 699}
TICKS = (-300, -30, -10, -5, 0, 5, 10, 30, 100, 699)
FLAT = 1e-3
"""Relative differences below it are no fall."""
SAMPLES = {"clock_time": 5, "chartqa": 3}
HEIGHT, GAP = 200, 8
"""Pixels of the pictures that stand side by side, and between them."""
OF_DEMO = ("overview", "digit_distribution[digit=3]")


def draw_losses(losses: list[str]) -> Figure:
    """A row a loss: the penalty at N = 10 by value, at N = 1000 by distance from the target."""
    figure = new_figure(WIDTH, 0.75 + 1.75 * len(losses))
    axes = figure.subplots(
        len(losses), 2, sharex="col", squeeze=False, width_ratios=[1, 1.8]
    )
    styles = loss_styles(losses)
    for (loss, look), (small_axis, large_axis) in zip(
        styles.items(), axes, strict=True
    ):
        small, large = (find_penalties([loss], *item) for item in TARGETS.items())
        term = small["term"].iloc[0].replace(", ", ",\n")
        label = f"{folded(loss_label(loss), 20)}\n({term})"
        small_axis.set_ylabel(label, rotation=0, ha="right", va="center", labelpad=8)
        draw_curve(small_axis, small, look)
        _say_falls(small_axis, small)

        # Where it has no auxiliary, what is charged is cross-entropy.
        if large["term"].iloc[0].startswith("cross-entropy") and loss != "ce":
            _say_nothing(large_axis)
            continue
        _say_falls(large_axis, large)
        large[["value", "target"]] -= TARGETS[1000]
        marked = [*large.index[large["value"].abs().isin(MARKED)]]
        draw_curve(large_axis, large, look, markevery=marked)

    for axis, (size, target) in zip(axes[0], TARGETS.items(), strict=True):
        below = axis.get_title(loc="right")
        axis.set_title(f"N = {size}, target {target}" + "\n" * bool(below))
    axes[-1][0].set(xticks=range(10), xlabel="predicted value")
    _scale_distances(axes[-1][1])
    return figure


def _say_falls(axis: Axes, curve: pd.DataFrame) -> None:
    """Say above a panel where a worse value costs less, which no eye would see at its edge."""
    penalties = curve.set_index("value")["penalty"]
    target = curve["target"].iloc[0]
    clauses = []
    sides = {"below": penalties.loc[target::-1], "beyond": penalties.loc[target:]}
    for word, side in sides.items():
        turn = side.index[side >= (1 - FLAT) * side.max()][-1]
        end = side.index[-1]
        # The gradient of a loss that counts a part as constant is not its slope.
        if turn not in (end, target):
            clauses.append(
                f"falls {word} {turn}: {side[turn]:.2f} → {side[end]:.2f} at {end}"
            )
    axis.set_title("; ".join(clauses), loc="right", fontsize=7.5, pad=3)


def _say_nothing(axis: Axes) -> None:
    place = {"transform": axis.transAxes, "ha": "center", "va": "center"}
    axis.text(0.5, 0.5, "does not act on\nmulti-digit tokens", color=GREY, **place)
    axis.set_yticks([])
    axis.grid(visible=False)


def _scale_distances(axis: Axes) -> None:
    # Near the target a step counts, far from it only the order of magnitude.
    axis.set_xscale("symlog", linthresh=NEAR, linscale=1)
    axis.set_xlim(1.12 * TICKS[0], 1.12 * TICKS[-1])
    labels = [f"{tick:+d}".replace("-", "−") if tick else "0" for tick in TICKS]
    axis.set_xticks(TICKS, labels)
    axis.set_xticks([], minor=True)
    axis.set_xlabel("predicted value − target")


def join_samples(task: str, count: int) -> Image.Image:
    """The first pictures of the test examples of a task, side by side."""
    # Several questions are about one chart.
    examples = load_task(task).examples("test", 0, 4 * count)
    paths = [*dict.fromkeys(example.images[0] for example in examples)]
    pictures = []
    for path in paths[:count]:
        picture = Image.open(path).convert("RGB")
        width = round(picture.width * HEIGHT / picture.height)
        pictures.append(picture.resize((width, HEIGHT), Image.Resampling.LANCZOS))

    width = sum(picture.width + GAP for picture in pictures) - GAP
    joined = Image.new("RGB", (width, HEIGHT), "white")
    start = 0
    for picture in pictures:
        joined.paste(picture, (start, 0))
        start += picture.width + GAP
    return joined


def draw(folder: Path, demo: Path | None = None) -> None:
    """Draw what no run is needed for, and of the run `demo` its two figures."""
    # A thousand small sums a loss: threads would only wait for each other.
    torch.set_num_threads(1)
    folder.mkdir(parents=True, exist_ok=True)
    for task, count in SAMPLES.items():
        join_samples(task, count).save(folder / f"sample_{task}.png")

    # The controls stand first: other papers' losses are compared with them.
    first = [*PAPER, *CONTROLS]
    others = [loss for loss in own_points("losses") if loss not in first]
    figures = {
        "loss_shapes": lambda: draw_losses([*PAPER]),
        "loss_shapes_others": lambda: draw_losses([*CONTROLS, *others]),
    }
    if demo is not None:
        run = read_run(demo)
        for spec in OF_DEMO:
            name = spec.partition("[")[0]
            figures[name] = lambda spec=spec: load("reports", spec).build(run).figure

    with figure_style():
        for name, make in figures.items():
            figure = make()
            figure.savefig(folder / f"{name}.png", metadata={"Software": None})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Draw the pictures of the pages.")
    parser.add_argument("folder", type=Path, nargs="?", default=IMAGES)
    parser.add_argument("--run", type=Path, help="the run of `make demo`")
    options = parser.parse_args()
    draw(options.folder, options.run)
