"""The digit probes of a run: the mean predicted distribution at the first digit of the answer."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from smmd_bench.contracts import Run

from ._cells import KEY, NO_NUMBERS, identity, in_order, with_numbers

DIGITS = [f"p{digit}" for digit in range(10)]
NO_PROBES = "no cell has digit probes"
_SQUARES = [f"{name}_square" for name in DIGITS]
_GROUP = [*KEY, "digit"]


def first_digit_distributions(run: Run) -> pd.DataFrame:
    """One row a model, task, loss and true first digit: mean and deviation of p0 to p9, n, seeds.

    It is the first digit of the final answer; of a token of several digits the leading one. n is
    that of one seed; mean and deviation are over the examples of all seeds.
    """
    parts = []
    for cell in with_numbers(run).to_dict("records"):
        columns = ["answer_digit", "target_value", *DIGITS]
        probes = run.read("probes", columns, [str(cell["address"])])
        if probes.empty:
            continue
        first = probes[probes["answer_digit"] == 0]
        leading = {value: leading_digit(value) for value in first["target_value"].unique()}
        p = first[DIGITS].to_numpy(np.float64)  # [n, 10]
        true = first["target_value"].map(leading).to_numpy()  # [n]
        member = np.equal.outer(np.arange(1, 10), true).astype(np.float64)  # [9, n]
        sums = pd.DataFrame(np.hstack([member @ p, member @ p**2]), columns=[*DIGITS, *_SQUARES])
        n = member.sum(axis=1).astype(int)
        sums = sums.assign(**identity(cell), digit=range(1, 10), n=n)
        parts.append(sums[n > 0])
    if not parts:
        return pd.DataFrame(columns=[*_GROUP, "n", "seeds"])
    grouped = in_order(pd.concat(parts), run.cells).groupby(_GROUP, observed=True)
    data = grouped.agg(n=("n", "max"), seeds=("seed", "nunique"))
    means = grouped[[*DIGITS, *_SQUARES]].sum().div(grouped["n"].sum(), axis=0)
    for name, square in zip(DIGITS, _SQUARES, strict=True):
        data[name] = means[name]
        data[f"{name}_deviation"] = np.sqrt((means[square] - means[name] ** 2).clip(lower=0))
    return data.reset_index()


def leading_digit(value: float) -> int:
    """The first digit of a number; 0 of 0."""
    return int(f"{abs(value):e}"[0])


def first_digits(run: Run) -> Iterator[int]:
    """The digits that probed answers begin with, cell by cell, each read when it is asked for."""
    for address in with_numbers(run)["address"]:
        probes = run.read("probes", ["answer_digit", "target_value"], [str(address)])
        if len(probes):
            first = probes.loc[probes["answer_digit"] == 0, "target_value"]
            yield from map(leading_digit, first.unique())


def why_no_first_digits(run: Run) -> str | None:
    """Why `first_digit_distributions` has no row; None: it may have some."""
    if run.having("probes").empty:
        return NO_PROBES
    if with_numbers(run).empty:
        return NO_NUMBERS
    return None if any(first_digits(run)) else "no answer begins with a numeric token other than 0"
