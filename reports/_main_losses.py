"""The losses that a run is about, without the variants that only an ablation asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from smmd_bench.contracts import Run


def main_losses(run: Run) -> tuple[Run, str]:
    """The run without variants that have fewer seeds than their plain loss, and a sentence on it.

    `smmd[sigma=1]` with one seed is left to the tables of ablations where `smmd` has three on the
    same model and task; with as many seeds it stays. The sentence is empty where all stays.
    """
    left_to_ablations = _with_fewer_seeds(run.cells)
    if not left_to_ablations.any():
        return run, ""
    left = run.cells.loc[left_to_ablations, ["loss"]].drop_duplicates()
    note = f" Only in the ablation tables and sweeps: {len(left)} variants with fewer seeds."
    return run.only(run.cells[~left_to_ablations]), note


def _with_fewer_seeds(cells: pd.DataFrame) -> pd.Series[bool]:
    """Which of the cells are of such a variant."""
    key = ["model", "task", "loss"]
    seeds = cells.groupby(key, observed=True)["seed"].nunique().to_dict()
    return cells[key].apply(
        lambda cell: (
            seeds[tuple(cell)]
            < seeds.get((cell["model"], cell["task"], str(cell["loss"]).partition("[")[0]), 0)
        ),
        axis=1,
    )
