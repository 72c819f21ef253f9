"""What the error analyses draw, a block a model and task with a column a loss, and say of it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from smmd_bench.contracts import Run
from smmd_bench.publishing.style import LossStyle, folded, loss_label, model_label, shortened

from ._caption import Words, missing_note, split_caption
from ._errors import CommonErrors, Pair, silent
from ._panels import FEWEST, few_note, pair_name, select_losses

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOSSES = 5
"""Losses over the reference that are drawn at most."""
FEW = 4
"""So many counts a sentence lists; of more it gives the smallest and the largest share."""

Block = list[CommonErrors]
"""The drawn pairs of a model and task."""


def drawn_blocks(found: Sequence[CommonErrors]) -> list[Block]:
    """The pairs to draw of every model and task."""
    drawn = []
    for _, group in groupby(found, key=lambda each: (each.pair.model, each.pair.task)):
        every = {each.pair.loss: each for each in group}
        drawn.append([every[loss] for loss in select_losses(list(every), LOSSES)])
    return drawn


def with_enough(found: Sequence[CommonErrors]) -> list[CommonErrors]:
    """The pairs with the examples that a panel needs."""
    return [common for common in found if common.n >= FEWEST * len(common.pair.seeds)]


def block_label(pair: Pair) -> str:
    """The name in a title: `Qwen2.5-1.5B, gsm8k`."""
    return pair_name((pair.model, pair.task))


def panel_title(common: CommonErrors, n: int) -> str:
    """`SMMD over CE`, with the parameters of a variant in lines of their own, and its n. Of a long
    name it has the start and the end; the legend has all of it."""
    pair = common.pair
    words = f"{loss_label(pair.loss)} over {loss_label(pair.reference)}"
    seeds = f", {len(pair.seeds)} seeds" if len(pair.seeds) > 1 else ""
    lines = [shortened(line, 18) for line in folded(words, 18).splitlines()]
    return "\n".join([*lines, f"n = {n:,}{seeds}"])


def set_share_scale(axis: Axes, highest: float, ticks: Sequence[float]) -> None:
    """The scale of square roots: a tail of 1 % shows beside 50 % of exact answers, and 0 is 0."""
    root = (lambda share: np.sqrt(np.clip(share, 0, None)), np.square)
    axis.set_yscale("function", functions=root)
    axis.set_yticks([tick for tick in ticks if tick <= highest])


def draw_shares(
    axis: Axes, shares: ArrayLike, edges: ArrayLike, style: LossStyle, filled: bool
) -> None:
    """A histogram as an outline, of the reference over a grey area."""
    if filled:
        axis.stairs(shares, edges, fill=True, color="#DDDDDD")
    axis.stairs(shares, edges, **style.lined(linewidth=1.5))


def error_caption(
    run: Run, found: Sequence[CommonErrors], groups: int, shown: str, *notes: str
) -> Words:
    """The words of a figure of error analyses, with what of `found` it leaves out."""
    enough = with_enough(found)
    drawn = {common.pair for common in enough}
    names = zip(pair_names(found), found, strict=True)
    few = few_note(name for name, common in names if common.pair not in drawn)
    parts = (subset_note(found), silent_note(run), *notes, few, limit_note(enough, groups))
    return split_caption(shown, *parts, more=missing_note(run.cells))


def pair_names(found: Sequence[CommonErrors]) -> list[str]:
    """`SMMD`, or `SMMD (Qwen2.5-1.5B, gsm8k)` where there are several models and tasks."""
    several = len(drawn_blocks(found)) > 1
    labels = [f" ({block_label(each.pair)})" if several else "" for each in found]
    return [loss_label(each.pair.loss) + label for each, label in zip(found, labels, strict=True)]


def subset_note(found: Sequence[CommonErrors]) -> str:
    """Sentences on the common-valid subsets and their sizes."""
    sizes = zip(pair_names(found), (x.n for x in found), (x.examples for x in found), strict=True)
    return (
        "Common-valid subset, one for each loss and the reference: the examples that both answer "
        f"with a number, on the seeds that both have. Its share: {in_brief(list(sizes))}."
    )


def outside_note(where: str, found: Sequence[CommonErrors], data: pd.DataFrame) -> str:
    """A sentence on the answers in bins without an end; empty where there are none.

    `data` has the columns model, task, pair, loss, low, high and count.
    """
    keys = ["model", "task", "pair", "loss"]
    beyond = np.isinf(data["low"]) | np.isinf(data["high"])
    counts = data.assign(outside=data["count"].where(beyond, 0)).groupby(keys, observed=True)
    totals = counts[["outside", "count"]].sum().astype(int).T.to_dict("list")
    said = []
    for each, name in zip(found, pair_names(found), strict=True):
        pair = each.pair
        beside = {pair.loss: name, pair.reference: f"{loss_label(pair.reference)} beside {name}"}
        for loss, text in beside.items():
            said.append((text, *totals[pair.model, pair.task, pair.loss, loss]))
    return f"{where}: {in_brief(said)}." if any(count for _, count, _ in said) else ""


def in_brief(counts: Sequence[tuple[str, int, int]]) -> str:
    """`NTL 139 of 150; SMMD 142 of 150`, from (name, count, of how many).

    Of more than FEW: `from 54.9 % with GCE to 100.0 % with DIST2`.
    """
    if len(counts) <= FEW:
        return "; ".join(f"{name} {count:,} of {every:,}" for name, count, every in counts)
    shares = sorted((100 * count / max(1, every), name) for name, count, every in counts)
    (low, first), (high, last) = shares[0], shares[-1]
    if f"{low:.1f}" == f"{high:.1f}":
        return f"{low:.1f} % of each"
    return f"from {low:.1f} % with {first} to {high:.1f} % with {last}"


def silent_note(run: Run) -> str:
    """A sentence on the losses left out, which gave no number; empty where none is."""
    cells = silent(run).query("loss != 'base'")
    named = zip(*(cells[name].astype("str") for name in ("loss", "model", "task")), strict=True)
    names = dict.fromkeys(f"{loss_label(x)} ({model_label(m)}, {task})" for x, m, task in named)
    return f"Left out, without one number: {', '.join(names)}." if names else ""


def limit_note(found: Sequence[CommonErrors], groups: int) -> str:
    """A sentence on what is not drawn; empty where all is."""
    blocks, notes = drawn_blocks(found), []
    if len(blocks) > groups:
        notes.append(f"{groups} of {len(blocks)} combinations of model and task")
    if sum(map(len, blocks)) < len(found):
        shown = dict.fromkeys(loss_label(each.pair.loss) for block in blocks for each in block)
        notes.append(f"at most {LOSSES} losses over the reference ({', '.join(shown)})")
    return f"Drawn are {' and '.join(notes)}; the CSV of the figure has all." if notes else ""
