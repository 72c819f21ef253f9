"""Who is first among many? Losses that no test tells apart, as compact letters.

Losses that share a letter are told apart by no test: all pairs of a model, task and metric, over
the seeds that both have, with p corrected by Holm over the pairs. The letters are those of H.-P.
Piepho (Journal of Computational and Graphical Statistics 13, 2004); `a` has the best loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import combinations
from statistics import fmean
from string import ascii_letters
from typing import TYPE_CHECKING, Any

from ..contracts import Metric, Percentage, Run
from ..scoring.crossed import fit, pseudo_values
from ..scoring.gain import LEVEL, gain_of, holm
from ..scoring.proportions import mcnemar_p, tango
from ..storage.cell import BASE
from .opponents import cell_key

if TYPE_CHECKING:
    import pandas as pd

LEAST = 5
"""Losses that need groups."""


def tie_letters(run: Run, metrics: Callable[[str], Sequence[Metric]]) -> pd.DataFrame:
    """One row a model, task, metric and loss, the best first: its mean value and its letters.

    Models and tasks with fewer than `LEAST` losses have no row.
    """
    import pandas as pd

    rows: list[dict[str, Any]] = []
    done = run.cells[(run.cells["status"] == "done") & (run.cells["loss"] != BASE)]
    for (model, task), cells in done.groupby(["model", "task"], observed=True):
        if cells["loss"].nunique() < LEAST:
            continue
        scores = run.read("scores", None, cells["address"]).set_index("uid")
        by_cell = dict([*scores.groupby("address", observed=True)])
        own = run.metrics[run.metrics["address"].isin(cells["address"])]
        for metric in metrics(str(task)):
            values = own[own["metric"] == metric.name].groupby("loss", observed=True)["value"]
            means = values.mean().dropna().sort_values(ascending=metric.better == "lower")
            letters = compact_letters([*means.index], _told_apart(run, cells, by_cell, metric))
            same = {"model": model, "task": task, "metric": metric.name}
            rows += [{**same, "loss": s, "value": means[s], "letters": letters[s]} for s in letters]
    return pd.DataFrame(rows, columns=["model", "task", "metric", "loss", "value", "letters"])


def compact_letters(names: Sequence[str], apart: Collection[frozenset[str]]) -> dict[str, str]:
    """The letters of each name, in that order; the pairs `apart` share none, and all others do."""
    groups = [frozenset(names)]
    for pair in apart:
        split = {group - {name} for group in groups if pair <= group for name in pair}
        others = [group for group in groups if not pair <= group]
        groups = [*others, *(new for new in split if not any(new < g for g in (*others, *split)))]
    ordered = sorted(groups, key=lambda group: sorted(map(names.index, group)))
    lettered = [*zip(ordered, ascii_letters, strict=False)]
    return {name: "".join(c for group, c in lettered if name in group) for name in names}


def _told_apart(
    run: Run, cells: pd.DataFrame, scores: dict[str, pd.DataFrame], metric: Metric
) -> set[frozenset[str]]:
    """The pairs of losses whose difference is significant."""
    import pandas as pd

    differences = pd.DataFrame([*_differences(run, cells, scores, metric)])
    if differences.empty:
        return set()
    groups = [*differences.groupby("pair", sort=False)]
    p_values = holm([gain_of(group)["p"] for _, group in groups])
    return {frozenset(pair) for (pair, _), p in zip(groups, p_values, strict=True) if p < LEVEL}


def _differences(
    run: Run, cells: pd.DataFrame, scores: dict[str, pd.DataFrame], metric: Metric
) -> Iterator[dict[str, Any]]:
    """One row a pair of cells that differ in their loss alone, as `gain_of` reads it."""
    described = {cell["address"]: cell for cell in run.manifest["cells"]}
    alike: dict[Any, dict[str, str]] = {}
    for address, loss in cells.sort_values("loss")[["address", "loss"]].itertuples(index=False):
        key = cell_key({**described[address], "reference": None})
        alike.setdefault(key._replace(loss="", budget=0), {})[loss] = address
    for key, held in alike.items():
        for pair in combinations(held, 2):
            mine, other = (scores[held[loss]] for loss in pair)
            if not mine.index.equals(other.index):
                mine, other = mine.align(other, join="inner", axis=0)
            if (values := pseudo_values(metric, mine, other)) is not None:
                yield {"pair": pair, "seed": key.seed, **_tested(metric, values)}


def _tested(metric: Metric, values: list[float]) -> dict[str, Any]:
    """What a comparison says: of a share by McNemar's test, of another metric by a t-test of its
    pseudo-values, where a comparison has the bootstrap."""
    from scipy.stats import t

    mean = fmean(values)
    found = {"difference": mean, "n": len(values), "jackknife": values}
    if isinstance(metric, Percentage) and {*values} <= {-100.0, 0.0, 100.0}:
        b, c = values.count(100.0), values.count(-100.0)
        low, high = tango(b, c, len(values))
        return {**found, "b": b, "c": c, "p": mcnemar_p(b, c), "low": low, "high": high}
    model = fit([values])
    p = 2 * t.sf(abs(mean) / model.error, model.df) if model.error else math.nan
    return {**found, "p": p, **dict.fromkeys(("b", "c", "low", "high"), math.nan)}
