"""Which losses of a run are compared, paired by seed, and what the seeds together say.

A loss is compared with cross-entropy of the same seed. Seeds are summed up by `gain_of`.
"""

from __future__ import annotations

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
    seeds = cells.groupby(KEY)["seed"].nunique().to_dict()
    kept = []
    for model, task, loss in cells[KEY].itertuples(index=False):
        # Over other seeds than those of its plain loss, a variant's mean misleads.
        plain = (model, task, loss.partition("[")[0])
        kept.append(is_tuned(loss) or seeds[model, task, loss] >= seeds.get(plain, 0))
    return run if all(kept) else run.only(cells[kept])


def find_metrics(task: str) -> Sequence[Metric]:
    """The metrics of a task, the one that selects first; none where its plugin is not here."""
    try:
        return load_task(task).metrics()
    except UserError:
        return ()


def label_metrics(task: str) -> dict[str, str]:
    """How a task calls its metrics, by name."""
    return {metric.name: metric.label for metric in find_metrics(task)}


def label_metric(task: str, name: str) -> str:
    """How a task calls a metric; its name where nothing says so."""
    return label_metrics(task).get(name, name)


def name_metric(run: Run, word: str) -> str:
    """Name the metric that the tables of a run call so, as `MAE` or `Acc`; else the word itself."""
    if (run.metrics["metric"] == word).any():
        return word
    for task in run.cells["task"].unique():
        for metric in find_metrics(task):
            label = metric.label.lower()
            if word.lower() in (label, label.partition(" (")[0]):
                return metric.name
    return word


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
    import pandas as pd

    rows = run.paired[run.paired["difference"].notna()]
    is_compared = is_reference(rows["against_loss"], reference)
    is_compared &= rows["kind"] == "comparison"
    # The noise floor is cross-entropy's own, and says nothing of another reference.
    if reference == REFERENCE:
        is_compared |= rows["kind"] == "noise"
    rows = rows[is_compared]
    # The noise floor stands last in tables: "comparison" is before "noise".
    rows = rows.sort_values("kind", kind="stable", ignore_index=True)

    # The other cell's value is missing where `Run.only` has left that cell out.
    values = run.metrics.set_index(["address", "metric"])["value"]
    for name, column in zip(VALUES, ("address", "against"), strict=True):
        keys = pd.MultiIndex.from_frame(rows[[column, "metric"]])
        rows[name] = values.reindex(keys).to_numpy()
    return order_losses(rows, run.cells)


def sum_up_seeds(seeds: pd.DataFrame, reference: str) -> pd.DataFrame:
    """One row a model, task, loss and metric of `pair_seeds`: what `gain_of` says of its seeds,
    p_holm, and smallest, of the first of so many losses."""
    import pandas as pd

    key = [*KEY, "metric"]
    if seeds.empty:
        numbers = ["seeds", "difference", "low", "high", "p", "p_holm", "smallest"]
        return order_losses(pd.DataFrame(columns=[*key, *numbers]), seeds)

    # The noise floor is no hypothesis about a loss: it is in no family.
    rows = seeds.assign(is_noise=seeds["loss"] == reference)
    data = sum_up_families(rows, [*key, "is_noise"], without="loss")
    return order_losses(data.drop(columns="is_noise"), seeds)


def sum_up_families(rows: pd.DataFrame, key: list[str], without: str) -> pd.DataFrame:
    """What `gain_of` says of the rows of each key, p_holm and smallest, corrected over a family.

    without: the column of the key in which the hypotheses of a family differ.
    """
    import pandas as pd

    gains = []
    for names, group in rows.groupby(key, sort=False):
        gains.append({**dict(zip(key, names, strict=True)), **gain_of(group)})
    table = pd.DataFrame(gains)

    family = [name for name in key if name != without]
    p = table.groupby(family)["p"]
    table["p_holm"] = p.transform(holm)

    # Holm's first step tests at the level over the number of hypotheses.
    sizes = p.transform("count").clip(lower=1)
    table["smallest"] = [*map(smallest_difference, gains, LEVEL / sizes)]
    return table
