"""The panels of the error analyses: a block a model and task, in it a column a loss over CE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from smmd_bench.publishing.style import (
    WIDTH,
    folded,
    legend_above,
    loss_label,
    new_figure,
    width_for,
)

from ._errors import CommonErrors, Comparison, Errors, Pair

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

LOSSES = 5
"""Losses over the reference that are drawn at most."""


@dataclass(frozen=True)
class Block:
    """The panels of one model and task; they share their axes.

    axes  [rows, columns]; a column belongs to a drawn pair, those that are left over are hidden
    """

    comparison: Comparison
    errors: Errors
    axes: NDArray[np.object_]

    def columns(self) -> list[tuple[Sequence[Axes], Pair, CommonErrors]]:
        """The panels of each drawn pair from top to bottom, and what they show."""
        drawn = zip(self.axes.T, self.comparison.drawn(LOSSES), strict=False)
        return [(list(column), pair, self.errors[pair.loss]) for column, pair in drawn]

    def of(self, data: pd.DataFrame) -> pd.DataFrame:
        """The rows of its model and task."""
        comparison = self.comparison
        return data[(data["model"] == comparison.model) & (data["task"] == comparison.task)]


def new_blocks(
    found: Sequence[tuple[Comparison, Errors]], rows: int, height: float, note: str = ""
) -> tuple[Figure, list[Block]]:
    """A figure with a block of that many rows and inches for every comparison, still empty.

    `note` follows model and task above a block.
    """
    most = max(len(comparison.drawn(LOSSES)) for comparison, _ in found)
    width = width_for(most)
    figure = new_figure(width, 0.5 + height * len(found))
    parts = figure.subfigures(len(found), 1, squeeze=False)[:, 0]
    blocks = []
    for part, (comparison, errors) in zip(parts, found, strict=True):
        part.suptitle(folded(comparison.label + note, int(12 * width)), fontsize=10)
        axes = part.subplots(rows, most, sharex=True, sharey=True, squeeze=False)
        blocks.append(Block(comparison, errors, axes))
        for axis in axes[:, len(comparison.pairs) :].ravel():
            axis.set_visible(False)
    return figure, blocks


def legend(figure: Figure, blocks: Sequence[Block]) -> None:
    """The legend above the figure, with as many losses side by side as fit."""
    longest = max(len(loss_label(pair.loss)) for each in blocks for _, pair, _ in each.columns())
    fitting = int(30 * LOSSES * figure.get_figwidth() / WIDTH) // (longest + 8)
    axes = [axis for block in blocks for axis in block.axes.ravel()]
    legend_above(figure, axes, max(1, min(6, fitting)))


def panel_title(comparison: Comparison, pair: Pair, n: int) -> str:
    """`SMMD over CE`, with the parameters of a variant in lines of their own, and its n."""
    words = f"{loss_label(pair.loss)} over {loss_label(comparison.reference)}"
    seeds = f", {len(pair.seeds)} seeds" if len(pair.seeds) > 1 else ""
    return folded(words, 22) + f"\nn = {n:,}{seeds}"


def square_root(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The scale of the shares: a tail of 1 % shows beside 50 % of exact answers, and 0 is 0."""
    return np.asarray(np.sqrt(np.clip(values, 0, None)))
