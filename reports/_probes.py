"""The digit probes of a run: whose answers are numbers, rationales, and the size of V_num."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from smmd_bench.decoding.probe import OUTSIDE

from ._cells import without_numbers

if TYPE_CHECKING:
    from smmd_bench.contracts import Run


def with_numbers(run: Run) -> pd.DataFrame:
    """The cells of tasks whose answers are numbers; a number in a summary is none."""
    return run.cells[~run.cells["task"].isin(without_numbers(run))]


def rationale_shares(run: Run) -> dict[str, float]:
    """By task, the share of the digit probes that stand outside the final answer; tasks that have
    none are left out. Cells of one model and task have the same targets: one of them is read."""
    outside: dict[str, list[pd.Series[bool]]] = {}
    cells = with_numbers(run)
    probed = cells[cells["address"].isin(run.having("probes")["address"])]
    for (_, task), cells in probed.groupby(["model", "task"], observed=True):
        probes = run.read("probes", ["answer_digit"], cells["address"][:1])
        outside.setdefault(str(task), []).append(probes["answer_digit"] == OUTSIDE)
    shares = {task: float(pd.concat(found).mean()) for task, found in outside.items()}
    return {task: share for task, share in shares.items() if share > 0}


def vocabulary_sizes(run: Run) -> dict[str, int]:
    """N, the size of V_num, of every model that has a whole vector among its digit probes."""
    sizes = {}
    for model, cells in run.cells.groupby("model", observed=True):
        for address in cells["address"]:
            probes = run.read("probes", ["vector"], [address])
            if "vector" in probes and len(known := probes["vector"].dropna()):
                sizes[str(model)] = len(known.iloc[0])
                break
    return sizes
