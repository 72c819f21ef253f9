"""The mean predicted distribution at the first digit of the final answer, from digit probes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ._cells import in_order
from ._probes import with_numbers

if TYPE_CHECKING:
    from smmd_bench.contracts import Run

DIGITS = [f"p{digit}" for digit in range(10)]
SUMS, SQUARES = ([f"{what}_{name}" for name in DIGITS] for what in ("sum", "square"))
GROUP = ["model", "task", "loss", "digit"]


def first_digit_distributions(run: Run) -> pd.DataFrame:
    """One row a model, task, loss and true first digit: mean and deviation of p0 to p9, n, seeds.

    It is the first digit of the final answer: digits of a rationale before it do not count.
    Where tokens hold several digits, the digit is the leading one of the target token's value.
    n is that of one seed; mean and deviation are over the examples of all seeds.
    """
    parts = []
    for cell in with_numbers(run).to_dict("records"):
        columns = ["answer_digit", "target_value", *DIGITS]
        probes = run.read("probes", columns, [str(cell["address"])])
        if probes.empty:
            continue
        first = probes[probes["answer_digit"] == 0]
        p = first[DIGITS].to_numpy(np.float64)  # [n, 10]
        values, which = np.unique(first["target_value"].to_numpy(np.float64), return_inverse=True)
        leading = np.array([int(f"{abs(value):e}"[0]) for value in values])
        true = leading[which]  # [n]
        member = np.equal.outer(np.arange(1, 10), true).astype(np.float64)  # [9, n]
        frame = pd.DataFrame(np.hstack([member @ p, member @ p**2]), columns=[*SUMS, *SQUARES])
        identity = {name: cell[name] for name in ("model", "task", "loss", "seed")}
        frame = frame.assign(**identity, digit=range(1, 10), n=member.sum(axis=1).astype(int))
        parts.append(frame[frame["n"] > 0])
    if not parts:
        return pd.DataFrame(columns=[*GROUP, "n", "seeds"])
    cells = in_order(pd.concat(parts, ignore_index=True), run.cells)
    grouped = cells.groupby(GROUP, observed=True)
    total, data = grouped["n"].sum(), grouped.agg(n=("n", "max"), seeds=("seed", "nunique"))
    for name in DIGITS:
        mean = grouped[f"sum_{name}"].sum() / total
        data[name] = mean
        spread = grouped[f"square_{name}"].sum() / total - mean**2
        data[f"{name}_deviation"] = np.sqrt(spread.clip(lower=0))
    return data.reset_index()


def why_no_first_digits(run: Run) -> str | None:
    """Why `first_digit_distributions` has no row; None: it may have some."""
    if run.having("probes").empty:
        return "no cell has digit probes"
    cells = with_numbers(run)
    if cells.empty:
        return "no task has numbers as answers"
    for address in cells["address"]:
        probes = run.read("probes", ["answer_digit", "target_value"], [address])
        if len(probes) and ((probes["answer_digit"] == 0) & (probes["target_value"] != 0)).any():
            return None
    return "no answer begins with a numeric token other than 0"
