"""Panels: which models, tasks and losses a figure draws, and the grid that holds them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd
from numpy.typing import NDArray

from smmd_bench.publishing import style
from smmd_bench.publishing.style import LossStyle, folded, loss_label, loss_styles, model_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Pair = tuple[str, str]
"""A model and a task."""

FEWEST = 30
"""Test examples that a panel needs; smaller ones are in table and CSV alone."""


def pairs(data: pd.DataFrame) -> list[Pair]:
    """The models and tasks of a frame, in the order of the run."""
    groups = data.groupby(["model", "task"], observed=True)
    return [(str(model), str(task)) for (model, task), _ in groups]


def of_pair(data: pd.DataFrame, pair: Pair) -> pd.DataFrame:
    """The rows of one model and task."""
    return data[(data["model"] == pair[0]) & (data["task"] == pair[1])]


def pair_name(pair: Pair) -> str:
    """Model and task in a sentence or a line: `Qwen2.5-1.5B, gsm8k`."""
    return f"{model_label(pair[0])}, {pair[1]}"


def pair_title(pair: Pair) -> str:
    """Model and task as the title of a panel."""
    return f"{model_label(pair[0])}\n{folded(pair[1], 34)}"


def select_panels(
    data: pd.DataFrame, groups: int, losses: int, kept: str = "table", first: Collection[str] = ()
) -> tuple[dict[Pair, list[str]], str]:
    """The losses to draw of each model and task, and a sentence on what is left out.

    No two losses look the same. Pairs of the tasks `first` go before others; `kept` names what has
    the losses left out.
    """
    styles = loss_styles(data["loss"].cat.categories)
    taken: dict[LossStyle, str] = {}
    drawn, notes = {}, []
    for at, pair in enumerate(sorted(pairs(data), key=lambda pair: pair[1] not in first)):
        name, have = f"{model_label(pair[0])} on {pair[1]}", set(of_pair(data, pair)["loss"])
        every = [str(loss) for loss in data["loss"].cat.categories if loss in have]
        if at >= groups:
            notes.append(name)
            continue
        distinct = [loss for loss in every if taken.setdefault(styles[loss], loss) == loss]
        drawn[pair] = select_losses(distinct, losses)
        if lost := [loss_label(loss) for loss in every if loss not in drawn[pair]]:
            notes.append(f"{', '.join(lost)} ({name})")
    return drawn, f"Not drawn, but in the {kept}: {'; '.join(notes)}." if notes else ""


def few_note(names: Iterable[str]) -> str:
    """A sentence that names what is not drawn for want of examples; empty where all is."""
    named = ", ".join(dict.fromkeys(names))
    return f"Not drawn, with fewer than {FEWEST} test examples: {named}." if named else ""


def select_losses(losses: Sequence[str], most: int) -> list[str]:
    """At most so many of the losses, in their order: SMMD first, then plain ones, then variants."""
    kept = set(sorted(losses, key=lambda loss: (loss != "smmd", "[" in loss))[:most])
    return [loss for loss in losses if loss in kept]


def panel_grid(
    drawn: Iterable[Pair], height: float, parts: Sequence[float] = (1,), **shared: Any
) -> tuple[Figure, NDArray[Any]]:
    """A figure with a titled panel of that many inches for each model and task, in threes.

    A panel has the axes of its `parts` below each other, with these heights. The axes are
    [rows * parts, columns]; those without a panel are hidden. `shared` is for `subplots`.
    """
    titles = [pair_title(pair) for pair in drawn]
    columns = min(3, len(titles))
    rows = -(-len(titles) // columns)
    figure = style.new_figure(style.width_for(columns), 0.6 + height * rows)
    axes = figure.subplots(
        rows * len(parts), columns, squeeze=False, height_ratios=[*parts] * rows, **shared
    )
    for axis, title in zip(axes[:: len(parts)].flat, titles, strict=False):
        axis.set_title(title, pad=9)
    for at in range(len(parts)):
        for axis in axes[at :: len(parts)].flat[len(titles) :]:
            axis.set_axis_off()
    return figure, axes


def block_grid(
    blocks: Sequence[tuple[str, int, int]], head: float, height: float
) -> tuple[Figure, list[NDArray[Any]]]:
    """A figure with a block of panels that share their axes for each title, rows and columns.

    A row is `height` inches high, and a block has `head` more. Panels are as wide in each block;
    the axes of a block are [its rows, its columns].
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


def plain_ticks(axis: Axes) -> None:
    """Tick labels such as 0.5 and 2 instead of powers of ten on a short logarithmic axis."""
    from matplotlib.ticker import LogLocator, NullFormatter

    low, high = axis.get_ylim()
    steps = {2.5: (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9), 8: (1, 1.5, 2, 3, 4, 5, 7)}
    steps |= {200: (1, 2, 5), math.inf: (1,)}
    subs = next(subs for ratio, subs in steps.items() if high < ratio * low)
    axis.yaxis.set_major_locator(LogLocator(subs=subs))
    axis.yaxis.set_major_formatter("{x:g}")
    axis.yaxis.set_minor_formatter(NullFormatter())
