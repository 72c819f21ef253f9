"""The drawing that figures share: which losses a panel draws, grids of panels, shares and ticks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd
from numpy.typing import NDArray

from smmd_bench.publishing import style
from smmd_bench.publishing.style import folded, model_label

from ._cells import Pair, of_pair, pairs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEWEST = 30
"""Test examples that a panel needs; smaller ones are in table and CSV alone."""
LIMITS = f"Panels need {FEWEST} examples, and only the first models, tasks and losses are drawn."


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
