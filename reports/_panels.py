"""The drawing that figures share: which losses a panel draws, grids of panels, axes of values."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd
from numpy.typing import NDArray

from smmd_bench.publishing import style
from smmd_bench.publishing.style import folded, model_label

from ._cells import Pair, of_pair, pairs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FEWEST = 30
"""Test examples that a panel needs; smaller ones are in table and CSV alone."""
LIMITS = f"Panels need {FEWEST} examples, and only the first models, tasks and losses are drawn."

LEAST, WIDE = 3, 20
"""Values of a parameter that make a curve, and largest over smallest on a logarithmic axis."""


def pair_name(pair: Pair) -> str:
    """Model and task in a line: `Qwen2.5-1.5B, gsm8k`."""
    return f"{model_label(pair[0])}, {pair[1]}"


def select_panels(
    data: pd.DataFrame, groups: int | None, losses: int, first: Collection[str] = ()
) -> dict[Pair, list[str]]:
    """The losses to draw of each of the first models and tasks, in order: SMMD goes before plain
    losses, and these before variants. The tasks `first` go before others."""
    drawn = {}
    for pair in sorted(pairs(data), key=lambda pair: pair[1] not in first)[:groups]:
        every = [str(loss) for loss in of_pair(data, pair)["loss"].sort_values().unique()]
        kept = sorted(every, key=lambda loss: (loss != "smmd", "[" in loss))[:losses]
        drawn[pair] = [loss for loss in every if loss in kept]
    return drawn


def block_grid(
    blocks: Sequence[tuple[str, int, int]], head: float, height: float
) -> tuple[Figure, list[NDArray[Any]]]:
    """A figure with a block of panels that share their axes for each title, rows and columns.

    A row is `height` inches high, and a block has `head` more. The axes of a block are [its rows,
    its columns].
    """
    most = max(columns for _, _, columns in blocks)
    width, heights = style.width_for(most), [head + height * rows for _, rows, _ in blocks]
    figure = style.new_figure(width, 0.5 + sum(heights))
    parts = figure.subfigures(len(blocks), 1, squeeze=False, height_ratios=heights)[:, 0]
    found = []
    for part, (title, rows, columns) in zip(parts, blocks, strict=True):
        part.suptitle(folded(title, int(12 * width)), fontsize=10)
        axes = part.subplots(rows, most, sharex=True, sharey=True, squeeze=False)
        for axis in axes[:, columns:].flat:
            axis.set_axis_off()
        found.append(axes[:, :columns])
    return figure, found


def symbol(parameter: str) -> str:
    """How an axis calls a parameter."""
    return {"sigma": "σ", "lambda": "λ"}.get(parameter, parameter)


def parameter_panels(titles: Sequence[Pair]) -> tuple[Figure, list[Axes]]:
    """A figure with a panel for each of these models and tasks, three in a row."""
    columns, rows = min(3, len(titles)), -(-len(titles) // 3)
    figure = style.new_figure(style.width_for(columns), 0.6 + 2.9 * rows)
    axes = [*figure.subplots(rows, columns, squeeze=False).flat]
    for axis, pair in zip(axes, titles, strict=False):
        axis.set_title("\n".join((model_label(pair[0]), pair[1])), pad=9)
    for axis in axes[len(titles) :]:
        axis.set_axis_off()
    return figure, axes[: len(titles)]


def set_values(axis: Axes, values: Sequence[float]) -> None:
    """Put a tick at each of these sorted values, on a logarithmic axis where they span much."""
    positive = [value for value in values if value > 0]
    if positive and positive[-1] >= WIDE * positive[0]:
        axis.set_xscale("symlog", linthresh=positive[0], linscale=0.5)
    axis.set_xticks(values, [f"{value:g}" for value in values])
    axis.set_xticks([], minor=True)
