"""How many seeds and test examples a wanted difference needs, from what a pilot run shows."""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import TYPE_CHECKING

from ..errors import UserError, did_you_mean
from ..scoring.crossed import Crossed, fit_cells
from ..scoring.gain import LEVEL, smallest_by_t

if TYPE_CHECKING:
    import pandas as pd

    from .frames import RunFrames

SEEDS = (2, 3, 5, 10, 20)
LARGER = (1, 2, 5, 10)
"""Times as many test examples as the pilot has."""
MOST = 1000
"""Seeds that are tried at most."""
LEAST = 3
"""Seeds that a spread over seeds needs. A pilot of one seed does not know it, so that its numbers
are the least: two seeds that it calls enough show nothing."""


def planned_power(
    run: RunFrames, metric: str = "exact_match", difference: float | None = None
) -> pd.DataFrame:
    """One row a model, task, loss and number of examples: what each number of seeds could show.

    pilot are its seeds, level is 0.05 over the losses of the model and task; seeds_2, seeds_3 and
    so on: the smallest true difference to cross-entropy that is found 4 times in 5 (missing: too
    few seeds to know their spread); needed: the fewest seeds for `difference` (missing: more than
    `MOST`); least, of a pilot of one seed: `LEAST`. Its `attrs["left_out"]` names the losses whose
    differences show no spread.
    """
    import pandas as pd

    pairs = run.paired.query(
        "kind == 'comparison' and against_loss in ('ce', 'ce[tuned]')"
    )
    if pairs.empty:
        raise UserError(
            f"{run.path} has no loss beside ce for the same seed: a pilot run needs both, as "
            "`train-eval --losses ce,smmd` makes it."
        )
    # Before the choice, after which no other metric is left to suggest.
    compared = pairs[pairs["difference"].notna()]
    hint = did_you_mean(metric, [*map(str, compared["metric"].unique())])
    pairs = compared[compared["metric"] == metric]
    if pairs.empty:
        raise UserError(f"{run.path} compares no losses by {metric}: {hint}")

    rows = []
    left_out = []
    for (model, task), of_task in pairs.groupby(["model", "task"]):
        # Holm's first step, over the losses of a task.
        level = LEVEL / of_task["loss"].nunique()
        for loss, cells in of_task.groupby("loss"):
            pilot = _fit_spread(cells)
            if pilot is None:
                left_out.append(str(loss))
                continue

            seeds = cells["seed"].nunique()
            name = {"model": model, "task": task, "loss": loss, "pilot": seeds}
            for larger in LARGER:
                row = {**name, "n": int(cells["n"].max()) * larger, "level": level}
                row |= {f"seeds_{s}": _smallest(pilot, s, larger, level) for s in SEEDS}
                if difference is not None:
                    row["needed"] = _fewest(pilot, larger, level, difference)
                row["least"] = LEAST if seeds == 1 else None
                rows.append(row)

    if not rows:
        others = _find_spreading(compared)
        remedy = f"or --metric {' or '.join(others)}" if others else "or more examples"
        raise UserError(
            f"No difference of {metric} in {run.path} has a spread: give more seeds, {remedy}."
        )
    table = pd.DataFrame(rows)
    table.attrs["left_out"] = [*dict.fromkeys(left_out)]
    return table


def _fit_spread(cells: pd.DataFrame) -> Crossed | None:
    """Fit the differences of a loss, one a seed; None where they show no spread."""
    # One seed shows a spread over its examples alone, by their pseudo-values.
    if len(cells) == 1 and not isinstance(cells["jackknife"].iloc[0], list):
        return None
    pilot = fit_cells(cells)
    return pilot if pilot.error > 0 else None


def _find_spreading(compared: pd.DataFrame) -> list[str]:
    """Find the metrics of which the differences of some loss have a spread."""
    spreading = []
    for (metric, *_), cells in compared.groupby(["metric", "model", "task", "loss"]):
        if metric not in spreading and _fit_spread(cells) is not None:
            spreading.append(str(metric))
    return spreading


def _smallest(pilot: Crossed, seeds: int, larger: float, level: float) -> float:
    planned = pilot.planned(seeds, larger)
    return smallest_by_t(planned.error, planned.df, level)


def _fewest(
    pilot: Crossed, larger: float, level: float, difference: float
) -> int | None:
    """By bisection: more seeds never show less."""

    def shown(seeds: int) -> float:
        smallest = _smallest(pilot, seeds, larger, level)
        # Too few seeds for any difference show less than all others.
        return -math.inf if math.isnan(smallest) else -smallest

    # One seed shows no spread of seeds, so that the search begins at two.
    seeds = 2 + bisect_left(range(2, MOST + 1), -difference, key=shown)
    return seeds if seeds <= MOST else None
