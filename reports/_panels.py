"""Panels for pairs of model and task: which there are, their titles, and the legend above them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from smmd_bench.publishing.style import (
    LossStyle,
    legend_above,
    loss_label,
    loss_styles,
    model_label,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LONG = 34
"""Letters of a task that fit above a panel."""


def pairs(data: pd.DataFrame) -> list[tuple[str, str]]:
    """The models and tasks of a frame, in the order of the run."""
    groups = data.groupby(["model", "task"], observed=True)
    return [(str(model), str(task)) for (model, task), _ in groups]


def of_pair(data: pd.DataFrame, pair: tuple[str, str]) -> pd.DataFrame:
    """The rows of one model and task."""
    return data[(data["model"] == pair[0]) & (data["task"] == pair[1])]


def losses_of(data: pd.DataFrame, pair: tuple[str, str]) -> list[str]:
    """The losses of one model and task, in the order of the run."""
    have = set(of_pair(data, pair)["loss"])
    return [str(loss) for loss in data["loss"].cat.categories if loss in have]


def that_fit(
    data: pd.DataFrame,
    groups: int,
    losses: int,
    kept: str = "table",
    first: Collection[str] = (),
) -> tuple[dict[tuple[str, str], list[str]], str]:
    """The losses to draw of each pair, and a sentence on what is left out (empty: nothing).

    At most so many of each, and no two that look the same; plain losses go before variants such as
    `smmd[sigma=1]`. Pairs of the tasks `first` go before others. `kept` is what has them all the
    same.
    """
    styles = loss_styles(data["loss"].cat.categories)
    taken: dict[LossStyle, str] = {}
    drawn, notes = {}, []
    for at, pair in enumerate(sorted(pairs(data), key=lambda pair: pair[1] not in first)):
        name, every = f"{model_label(pair[0])} on {pair[1]}", losses_of(data, pair)
        if at >= groups:
            notes.append(name)
            continue
        distinct = [loss for loss in every if taken.setdefault(styles[loss], loss) == loss]
        drawn[pair] = plain_first(distinct, losses)
        if lost := [loss_label(loss) for loss in every if loss not in drawn[pair]]:
            notes.append(f"{', '.join(lost)} ({name})")
    return drawn, f" Not drawn, but in the {kept}: {'; '.join(notes)}." if notes else ""


def plain_first(losses: Sequence[str], most: int) -> list[str]:
    """At most so many of the losses, in their order: variants only where plain ones leave room."""
    kept = set(sorted(losses, key=lambda loss: "[" in loss)[:most])
    return [loss for loss in losses if loss in kept]


def pair_title(pair: tuple[str, str]) -> str:
    """Model and task as the title of a panel."""
    model, task = pair
    return f"{model_label(model)}\n{task.replace('[', chr(10) + '[') if len(task) > LONG else task}"


def fitted_legend(figure: Figure, axes: Iterable[Axes], losses: Iterable[str]) -> None:
    """One legend above the figure, as wide as fits; the figure grows by its further lines."""
    labels = {loss_label(loss) for loss in losses}
    columns = int(13 * figure.get_figwidth() / (max(map(len, labels)) + 8))
    lines = -(-len(labels) // max(1, columns))
    figure.set_figheight(figure.get_figheight() + 0.19 * (lines - 1))
    legend_above(figure, axes, columns=max(1, columns))


def plain_ticks(axis: Axes) -> None:
    """Tick labels such as 0.5 and 2 instead of powers of ten on a short logarithmic axis."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_ylim()
    ratio = high / low
    subs = (1, 1.5, 2, 3, 4, 5, 7) if ratio < 8 else (1, 2, 5) if ratio < 200 else (1,)
    axis.yaxis.set_major_locator(LogLocator(subs=subs))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.yaxis.set_minor_formatter(NullFormatter())
