"""Which losses of a run are compared, paired by seed, and what the seeds together say.

A loss is compared with cross-entropy of the same seed. Seeds are summed up by `gain_of`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..contracts import Metric, Run
from ..errors import UserError
from ..plugin_system.parameters import is_tuned, tuned_label
from ..plugin_system.registry import load_task
from ..scoring.deciding import judging_metrics
from ..scoring.gain import LEVEL, gain_of, holm, smallest_difference
from .baselines import REFERENCE

if TYPE_CHECKING:
    import pandas as pd

KEY = ["model", "task", "loss"]
"""The columns that tell what was trained on what, and how."""
VALUES = ("value", "against_value")
"""The columns with the metric of a loss, and of what it is compared with."""


def main_losses(run: Run) -> Run:
    """The run without variants that have fewer seeds than their plain loss; tuned losses stay."""
    cells = run.cells
    seeds = cells.groupby(KEY, observed=True)["seed"].nunique().to_dict()
    kept = [
        is_tuned(loss)
        or seeds[model, task, loss] >= seeds.get((model, task, loss.partition("[")[0]), 0)
        for model, task, loss in cells[KEY].itertuples(index=False)
    ]
    return run if all(kept) else run.only(cells[kept])


def metrics_of(task: str) -> Sequence[Metric]:
    """The metrics of a task, the one that selects first; none where its plugin is not here."""
    try:
        return load_task(task).metrics()
    except UserError:
        return ()


def judged_metrics(task: str) -> list[Metric]:
    """The first metric of a task, and the first error that it measures, such as MAE."""
    return judging_metrics(metrics_of(task))


def reference_of(run: Run) -> str:
    """What the losses are compared with: cross-entropy; the first of completions made elsewhere."""
    others = run.comparisons["against_loss"]
    return str(others.iloc[0]) if "predictions" in run.manifest and len(others) else REFERENCE


def is_reference(against: pd.Series[str], other: str) -> pd.Series[bool]:
    """Where a loss is compared with `other`: a tuned loss with that tuned, too."""
    return against.isin([other, tuned_label(other)])


def in_order(data: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
    """The frame with model, task and loss as categoricals in the order of the run."""
    import pandas as pd

    for column in KEY:
        data[column] = pd.Categorical(data[column], categories=cells[column].cat.categories)
    return data


def paired(run: Run, other: str) -> pd.DataFrame:
    """The comparisons with a loss, and of cross-entropy with itself: a row a cell and metric."""
    every = run.paired[run.paired["difference"].notna()]
    noise = (every["kind"] == "noise") & (other == REFERENCE)
    wanted = (every["kind"] == "comparison") & is_reference(every["against_loss"], other)
    found = every[noise | wanted].sort_values("kind", kind="stable", ignore_index=True)
    values = run.metrics.set_index(["address", "metric"])["value"]
    for name, column in zip(VALUES, ("address", "against"), strict=True):
        keys = zip(found[column], found["metric"], strict=True)
        found[name] = [float(values.get(key, math.nan)) for key in keys]
    return in_order(found, run.cells)


def gains(seeds: pd.DataFrame, other: str) -> pd.DataFrame:
    """One row a model, task, loss and metric of `paired`: what `gain_of` says of its seeds, p_holm
    (`other` against itself is in no family), and smallest, of the first of so many losses."""
    import pandas as pd

    groups = seeds.groupby([*KEY, "metric"], observed=True, sort=False)
    found = [{**group.iloc[0][[*KEY, "metric"]], **gain_of(group)} for _, group in groups]
    columns = [*KEY, "metric", "seeds", "difference", "low", "high", "p"]
    data = pd.DataFrame(found) if found else pd.DataFrame(columns=columns)
    data = in_order(data, seeds)
    family = ["model", "task", "metric", data["loss"] == other]
    p = data.groupby(family, observed=True)["p"]
    data["p_holm"] = p.transform(holm) if found else []
    sizes = [*p.transform("count").clip(lower=1)] if found else []
    smallest = [smallest_difference(r, LEVEL / n) for r, n in zip(found, sizes, strict=True)]
    return data.assign(smallest=smallest)
