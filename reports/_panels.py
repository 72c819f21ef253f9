"""The drawing that figures share: which losses a panel draws, grids of panels, axes of values."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from smmd_bench.publishing import style
from smmd_bench.publishing.style import folded, model_label, task_label

from ._results import Pair, list_pairs, select_pair

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

FEWEST = 30
"""Test examples that a panel needs; smaller ones are in table and CSV alone."""
LIMITS = (
    f"Panels need {FEWEST} examples, and only the first models, tasks and losses are drawn, "
    "variants last."
)

LEAST, WIDE = 3, 8
"""Values of a parameter that make a curve, and largest over smallest on a logarithmic axis."""


def name_pair(pair: Pair) -> str:
    """Model and task in a line: `Qwen2.5-1.5B, gsm8k`."""
    return f"{model_label(pair[0])}, {task_label(pair[1])}"


def select_panels(
    data: pd.DataFrame, groups: int | None, losses: int, first: Collection[str] = ()
) -> dict[Pair, list[str]]:
    """The losses to draw of each of the first models and tasks, in order: SMMD goes before plain
    losses, and these before variants. The tasks `first` go before others."""
    drawn = {}
    # Sorting is stable: otherwise the order of the run stays.
    ordered_pairs = sorted(list_pairs(data), key=lambda pair: pair[1] not in first)
    for pair in ordered_pairs[:groups]:
        losses_of_pair = select_pair(data, pair)["loss"]
        # Losses are categories, which sort in the order of the run.
        present = losses_of_pair.sort_values().unique()
        every_loss = [*map(str, present)]

        # The most important losses are chosen, but drawn in the run's order as in the tables.
        ranked = sorted(every_loss, key=lambda loss: (loss != "smmd", "[" in loss))
        chosen = ranked[:losses]
        drawn[pair] = [loss for loss in every_loss if loss in chosen]
    return drawn


def make_blocks(
    blocks: Sequence[tuple[str, int, int]], head: float, height: float
) -> tuple[Figure, list[list[Axes]]]:
    """A figure of blocks, each with a title, rows and columns. A column is an Axes, which takes
    matplotlib as long as hundreds of bars; those of a block share their scales.

    A row is `height` inches high, and a block has `head` more. `mark_rows` names rows.
    """
    most_columns = max(columns for _, _, columns in blocks)
    width = style.width_for(most_columns)
    heights = [head + height * rows for _, rows, _ in blocks]
    figure = style.new_figure(width, 0.5 + sum(heights))
    parts = stack_parts(figure, heights)

    grids = []
    for part, (title, _, columns) in zip(parts, blocks, strict=True):
        # An inch has about 12 letters at this size.
        part.suptitle(folded(title, int(12 * width)), fontsize=10)

        # All blocks have as many columns, so that panels are equally wide; spare ones stay empty.
        axes = [
            *part.subplots(
                1, most_columns, sharex=True, sharey=True, squeeze=False
            ).flat
        ]
        for axis in axes[columns:]:
            axis.set_axis_off()
        grids.append(axes[:columns])
    return figure, grids


def mark_rows(
    axes: Sequence[Axes], names: Sequence[str], ticks: Sequence[float], pitch: float
) -> list[float]:
    """Name the rows of a block and give each these ticks and a line at its 0; returns the heights
    of these lines. A row is `pitch` below the one before."""
    floors = [-pitch * row for row in range(len(names))]
    labels = [f"{tick:g}".replace("-", "−") for tick in ticks]
    places = np.add.outer(floors, ticks)  # [rows, ticks]
    first = axes[0]
    first.set_yticks(places.ravel(), labels * len(names))
    # Names are labels of minor ticks, further left; one may be at the place of a tick.
    first.set_yticks(places.mean(axis=1), names, minor=True)
    first.yaxis.remove_overlapping_locs = False
    first.tick_params(axis="y", which="minor", pad=30)
    for axis in axes:
        axis.tick_params(axis="y", which="both", length=0)
        axis.spines["left"].set_visible(False)
        for floor in floors:
            axis.axhline(floor, color="black", linewidth=0.8)
    return floors


def count_letters(columns: int) -> int:
    """Count the letters of a line of a title over a panel, of so many side by side."""
    # An inch has about 12 at this size. Titles must not touch.
    return int(12 * style.width_for(columns) / columns) - 3


def stack_parts(figure: Figure, heights: Sequence[float]) -> Sequence[SubFigure]:
    """Parts of a figure below each other, of these heights in inches."""
    parts = figure.subfigures(
        len(heights),
        1,
        squeeze=False,
        height_ratios=heights,
    )
    return [*parts[:, 0]]


def name_symbol(parameter: str) -> str:
    """How an axis calls a parameter."""
    return {"sigma": "σ", "lambda": "λ"}.get(parameter, parameter)


def make_panels(titles: Sequence[Pair]) -> tuple[Figure, list[Axes]]:
    """A figure with a panel for each of these models and tasks, at most three in a row."""
    figure, panels = make_grid(len(titles), 2.9)
    letters = count_letters(_count_columns(len(titles)))
    for axis, (model, task) in zip(panels, titles, strict=True):
        model_line = folded(model_label(model), letters)
        task_line = folded(task_label(task), letters)
        axis.set_title(f"{model_line}\n{task_line}", pad=9)
    return figure, panels


def make_grid(number: int, height: float) -> tuple[Figure, list[Axes]]:
    """A figure with so many panels, at most three in a row; a row is `height` inches high."""
    columns = _count_columns(number)
    rows = math.ceil(number / columns)
    width = style.width_for(columns)
    figure = style.new_figure(width, 0.6 + height * rows)
    axes = [*figure.subplots(rows, columns, squeeze=False).flat]

    # The last row may be filled in part; what is left of it stays empty.
    for axis in axes[number:]:
        axis.set_axis_off()
    return figure, axes[:number]


def _count_columns(panels: int) -> int:
    # Three and one would leave half of the figure white.
    return 2 if panels == 4 else min(3, panels)


def set_values(axis: Axes, values: Sequence[float]) -> None:
    """Put a tick at each of these sorted values, on a logarithmic axis where they span much."""
    # A weight of 0 is cross-entropy and needs its place: near it the scale is linear.
    positive = [value for value in values if value > 0]
    if positive and positive[-1] >= WIDE * positive[0]:
        axis.set_xscale("symlog", linthresh=positive[0], linscale=0.5)
    axis.set_xticks(values, [f"{value:g}" for value in values])
    axis.set_xticks([], minor=True)
