"""The mean predicted distribution at the first digit of the answers, from the digit probes."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ._cells import without_numbers

if TYPE_CHECKING:
    from smmd_bench.results.run import RunFrames

DIGITS = [f"p{digit}" for digit in range(10)]
SUMS, SQUARES = ([f"{what}_{name}" for name in DIGITS] for what in ("sum", "square"))
GROUP = ["model", "task", "loss", "digit"]


def first_digit_distributions(run: RunFrames) -> pd.DataFrame:
    """One row a model, task, loss and true first digit: mean and deviation of p0 to p9, n, seeds.

    Where tokens hold several digits, the digit is the leading one of the target token's value.
    n is that of one seed; mean and deviation are over the examples of all seeds.
    """
    parts = []
    for cell in probed(run):
        address = str(cell["address"])
        probes = run.read("probes", ["digit", "target_value", *DIGITS], [address])
        if probes.empty:
            continue
        first = probes[probes["digit"] == 0]
        p = first[DIGITS].to_numpy(np.float64)  # [n, 10]
        values, which = np.unique(first["target_value"].to_numpy(np.float64), return_inverse=True)
        true = np.array([_leading_digit(value) for value in values])[which]  # [n]
        member = np.equal.outer(np.arange(1, 10), true).astype(np.float64)  # [9, n]
        frame = pd.DataFrame(np.hstack([member @ p, member @ p**2]), columns=[*SUMS, *SQUARES])
        identity = {name: cell[name] for name in ("model", "task", "loss", "seed")}
        frame = frame.assign(**identity, digit=range(1, 10), n=member.sum(axis=1).astype(int))
        parts.append(frame[frame["n"] > 0])
    if not parts:
        return pd.DataFrame(columns=[*GROUP, "n", "seeds"])
    cells = pd.concat(parts, ignore_index=True)
    for column in ("model", "task", "loss"):
        cells[column] = pd.Categorical(cells[column], categories=run.cells[column].cat.categories)
    grouped = cells.groupby(GROUP, observed=True)
    total, data = grouped["n"].sum(), grouped.agg(n=("n", "max"), seeds=("seed", "nunique"))
    for name in DIGITS:
        mean = grouped[f"sum_{name}"].sum() / total
        data[name] = mean
        spread = grouped[f"square_{name}"].sum() / total - mean**2
        data[f"{name}_deviation"] = np.sqrt(spread.clip(lower=0))
    return data.reset_index()


def probed(run: RunFrames) -> Iterator[dict[Hashable, Any]]:
    """The cells with probes; not of summaries, where a number is no answer."""
    cells = run.having("probes")
    yield from cells[~cells["task"].isin(without_numbers(run))].to_dict("records")


def _leading_digit(value: float) -> int:
    return int(f"{abs(value):e}"[0])
