"""Two losses of one run against each other, over all seeds that both have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import UserError, did_you_mean
from ..plugin_system.registry import load_task
from ..scoring.gain import gain_of, holm, smallest_difference
from ..scoring.measure import compare
from ..scoring.statistics import RESAMPLES
from ..storage.cell import BASE
from .opponents import CellKey, cell_key

if TYPE_CHECKING:
    import pandas as pd

    from ..contracts import Task
    from .frames import RunFrames

COLUMNS = (
    "model", "task", "loss", "against", "metric", "seeds", "n", "difference", "low", "high", "p",
    "p_holm", "smallest",
)  # fmt: skip
LEVEL = 0.05


def contrasts(
    run: RunFrames, losses: Sequence[str], metric: str | None = None, *, resamples: int = RESAMPLES
) -> pd.DataFrame:
    """The first of the losses minus each of the others: one row a model, task, loss and metric.

    Of the first metric of each task, or of `metric`; "all" for all of them. The columns are those
    of `COLUMNS`: what `smmd_bench.scoring.gain.gain_of` says of the seeds that both losses have,
    p_holm (corrected over the other losses), and the smallest difference that the test finds with a
    probability of 80 %. Its `attrs["left_out"]` names the losses that share no seed with the first.

    Raises UserError for a loss or metric that the run has not measured, and where no seed has both.
    """
    import pandas as pd

    first, *others = _checked(run, losses, metric)
    held = {cell_key(cell): cell for cell in run.measured}
    rows = []
    for other in others:
        for task, seeds in _paired(run, held, first, other, resamples):
            name = metric or task.metrics()[0].name
            wanted = seeds if metric == "all" else seeds[seeds["metric"] == name]
            same = ["model", "task", "metric"]
            for key, cells in wanted.groupby(same, observed=True):
                gain = gain_of(cells)
                row = dict(zip(same, key, strict=True)) | {"loss": first, "against": other}
                rows.append({**gain, **row})
    if not rows:
        raise UserError(
            f"{run.path} has no {metric or 'result'} of {first} and of another of these losses for "
            "the same seed: `smmd-bench report` says what it has."
        )
    found = pd.DataFrame(rows)
    families = found.groupby(["model", "task", "metric"])
    found["p_holm"] = families["p"].transform(holm)
    sizes = families["p"].transform("count").clip(lower=1)
    pairs = zip(rows, sizes, strict=True)
    found["smallest"] = [smallest_difference(row, LEVEL / size) for row, size in pairs]
    found.attrs["left_out"] = [other for other in others if other not in {*found["against"]}]
    return found[list(COLUMNS)]


def _checked(run: RunFrames, losses: Sequence[str], metric: str | None) -> list[str]:
    """The losses, each once. Raises UserError for what the run does not have."""
    known, metrics = {*run.cells["loss"]}, {*run.metrics["metric"]}
    for loss in losses:
        if loss not in known:
            raise UserError(f"{run.path} has no loss '{loss}': {did_you_mean(loss, known)}")
    if metric is not None and metric not in ("all", *metrics):
        raise UserError(f"Unknown metric '{metric}': {did_you_mean(metric, sorted(metrics))}")
    if len(found := list(dict.fromkeys(losses))) < 2:
        raise UserError(f"--losses names {found[0]} alone: give another loss to compare it with.")
    return found


def _paired(
    run: RunFrames, held: Mapping[CellKey, Any], loss: str, other: str, resamples: int
) -> Iterator[tuple[Task, pd.DataFrame]]:
    """For each model and task, one row a seed and metric, as a run's comparisons have them."""
    import pandas as pd

    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    budgets = {key.budget for key in held if key.loss == other}
    for key, mine in held.items():
        budget = key.budget if key.budget in budgets else max(budgets, default=0)
        wanted = key._replace(loss=other, budget=budget)
        if other == BASE:
            wanted = wanted._replace(trained_on=None, recipe="", seed=0)
        theirs = held.get(wanted)
        if key.loss != loss or theirs is None:
            continue
        task = load_task(str(mine["task"]))
        scores = [run.read("scores", None, [cell["address"]]) for cell in (mine, theirs)]
        name = {"model": mine["model"], "task": mine["task"], "seed": mine["seed"]}
        found = compare(task, *scores, resamples=resamples)["metrics"]
        groups.setdefault((str(mine["model"]), str(mine["task"])), []).extend(
            {**name, "metric": metric, "against": theirs["address"], **values}
            for metric, values in found.items()
            if values["difference"] is not None
        )
    for (_, task_name), rows in groups.items():
        yield load_task(task_name), pd.DataFrame(rows)
