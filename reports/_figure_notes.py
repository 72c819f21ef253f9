"""What the captions of figures say of their cells: n, seeds, parse failures, optimiser steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smmd_bench.publishing.style import model_label

from ._cells import measured
from ._sample import named_seeds, sample_note
from ._variants import GROUP

if TYPE_CHECKING:
    import pandas as pd

    from smmd_bench.contracts import Run


def n_and_seeds(run: Run, cells: pd.DataFrame) -> str:
    """A sentence with n, seeds and parse failures of the cells; empty where none is measured."""
    cells = measured(cells)
    return "" if cells.empty else f" {sample_note(run, cells)}"


def seeds_and_steps(data: pd.DataFrame) -> str:
    """A sentence with the seeds of a frame of training logs, and how many steps they have."""
    steps = {
        f"{model_label(str(model))} on {task}": int(group["step"].max())
        for (model, task), group in data.groupby(GROUP, observed=True)
    }
    if len(set(steps.values())) == 1:
        length = f"{next(iter(steps.values())):,}"
    else:
        length = ", ".join(f"{n:,} ({name})" for name, n in steps.items())
    return f" {named_seeds(data).capitalize()}; optimiser steps: {length}."


def trained(cells: pd.DataFrame) -> pd.DataFrame:
    """Those of the cells that have seeds of training, which the untuned base has not; else all."""
    found: pd.DataFrame = cells[cells["loss"] != "base"]
    return cells if found.empty else found
