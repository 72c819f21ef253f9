"""The losses that a run is about, without the variants that only an ablation asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from smmd_bench.contracts import Run


def main_losses(run: Run) -> tuple[Run, str]:
    """The run without variants that have fewer seeds than their plain loss, and a sentence on it.

    `smmd[sigma=1]` with one seed is left to the tables of ablations where `smmd` has three on the
    same model and task; with as many seeds it stays. The sentence is empty where all stays.
    """
    key, cells = ["model", "task", "loss"], run.cells
    seeds = cells.groupby(key, observed=True)["seed"].nunique().to_dict()
    fewer = [
        seeds[model, task, loss] < seeds.get((model, task, loss.partition("[")[0]), 0)
        for model, task, loss in cells[key].itertuples(index=False)
    ]
    if not any(fewer):
        return run, ""
    left = cells.loc[fewer, "loss"].nunique()
    note = f" Only in the ablation tables and sweeps: {left} variants with fewer seeds."
    return run.only(cells[~np.array(fewer)]), note
