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


def drop_short_variants(run: Run) -> Run:
    """Leave out variants that have fewer seeds than their plain loss; tuned losses stay."""
    cells = run.cells
    seeds = cells.groupby(KEY, observed=True)["seed"].nunique().to_dict()
    kept = []
    for model, task, loss in cells[KEY].itertuples(index=False):
        plain = (model, task, loss.partition("[")[0])
        kept.append(is_tuned(loss) or seeds[model, task, loss] >= seeds.get(plain, 0))
    return run if all(kept) else run.only(cells[kept])


def find_metrics(task: str) -> Sequence[Metric]:
    """The metrics of a task, the one that selects first; none where its plugin is not here."""
    try:
        return load_task(task).metrics()
    except UserError:
        return ()


def judged_metrics(task: str) -> list[Metric]:
    """The first metric of a task, and the first error that it measures, such as MAE."""
    return judging_metrics(find_metrics(task))


def find_reference(run: Run) -> str:
    """What the losses are compared with: cross-entropy; the first of completions made elsewhere."""
    references = run.comparisons["against_loss"]
    if "predictions" in run.manifest and len(references):
        return str(references.iloc[0])
    return REFERENCE


def is_reference(against: pd.Series[str], reference: str) -> pd.Series[bool]:
    """Whether a loss is compared with the reference: a tuned loss with that tuned, too."""
    return against.isin([reference, tuned_label(reference)])


def order_losses(data: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
    """Make model, task and loss categoricals in the order of the run."""
    import pandas as pd

    for column in KEY:
        data[column] = pd.Categorical(
            data[column], categories=cells[column].cat.categories
        )
    return data


def pair_seeds(run: Run, reference: str) -> pd.DataFrame:
    """The comparisons with a loss, and of cross-entropy with itself: a row a cell and metric."""
    rows = run.paired[run.paired["difference"].notna()]
    is_noise = (rows["kind"] == "noise") & (reference == REFERENCE)
    is_comparison = rows["kind"] == "comparison"
    is_comparison &= is_reference(rows["against_loss"], reference)
    rows = rows[is_noise | is_comparison]
    # The noise floor stands last in tables: "comparison" is before "noise".
    rows = rows.sort_values("kind", kind="stable", ignore_index=True)

    values = run.metrics.set_index(["address", "metric"])["value"]
    for name, column in zip(VALUES, ("address", "against"), strict=True):
        keys = zip(rows[column], rows["metric"], strict=True)
        metric_values = [values.get(key, math.nan) for key in keys]
        rows[name] = [float(value) for value in metric_values]
    return order_losses(rows, run.cells)


def sum_up_seeds(seeds: pd.DataFrame, reference: str) -> pd.DataFrame:
    """One row a model, task, loss and metric of `pair_seeds`: what `gain_of` says of its seeds,
    p_holm, and smallest, of the first of so many losses."""
    import pandas as pd

    groups = seeds.groupby([*KEY, "metric"], observed=True, sort=False)
    gains = []
    for _, group in groups:
        names = group.iloc[0][[*KEY, "metric"]]
        gains.append({**names, **gain_of(group)})
    if not gains:
        numbers = ["seeds", "difference", "low", "high", "p", "p_holm", "smallest"]
        return order_losses(pd.DataFrame(columns=[*KEY, "metric", *numbers]), seeds)

    # The noise floor is no hypothesis about a loss: it is in no family.
    data = order_losses(pd.DataFrame(gains), seeds)
    family = ["model", "task", "metric", data["loss"] == reference]
    p = data.groupby(family, observed=True)["p"]
    data["p_holm"] = p.transform(holm)

    # Holm's first step tests at the level over the number of hypotheses.
    sizes = p.transform("count").clip(lower=1)
    data["smallest"] = [
        smallest_difference(gain, LEVEL / size)
        for gain, size in zip(gains, sizes, strict=True)
    ]
    return data
