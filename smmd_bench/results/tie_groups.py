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
from .baselines import CellKey, cell_key

if TYPE_CHECKING:
    import pandas as pd

LEAST = 5
"""Losses that need groups."""


def tie_letters(run: Run, metrics: Callable[[str], Sequence[Metric]]) -> pd.DataFrame:
    """Letter the losses: a row a model, task, metric and loss with its mean, the best first.

    Models and tasks with fewer than `LEAST` losses have no row.
    """
    import pandas as pd

    rows = []
    measured = run.cells[run.cells["status"] == "done"]
    trained = measured[measured["loss"] != BASE]
    for (model, task), cells in trained.groupby(["model", "task"]):
        if cells["loss"].nunique() < LEAST:
            continue

        # Read once for all metrics: the scores of a run are its largest files.
        scores = run.read("scores", None, cells["address"]).set_index("uid")
        by_cell = dict([*scores.groupby("address")])
        for metric in metrics(str(task)):
            means = _rank_losses(run, cells, metric)
            apart = _find_different(run, cells, by_cell, metric)
            for loss, letters in compact_letters([*means.index], apart).items():
                rows.append((model, task, metric.name, loss, means[loss], letters))
    columns = ["model", "task", "metric", "loss", "value", "letters"]
    return pd.DataFrame(rows, columns=columns)


def _rank_losses(run: Run, cells: pd.DataFrame, metric: Metric) -> pd.Series[float]:
    """Average each loss over its cells, the best first."""
    of_cells = run.metrics["address"].isin(cells["address"])
    values = run.metrics[of_cells & (run.metrics["metric"] == metric.name)]
    # A loss whose metric has no value, as an error without a valid answer, has no place.
    means = values.groupby("loss")["value"].mean().dropna()
    return means.sort_values(ascending=metric.better == "lower")


def compact_letters(
    names: Sequence[str], apart: Collection[frozenset[str]]
) -> dict[str, str]:
    """Give each name its letters; the pairs `apart` share none, and all others do."""
    groups = [frozenset(names)]
    for pair in apart:
        groups = _split_groups(groups, pair)
    groups.sort(key=lambda group: sorted(map(names.index, group)))

    # The group that holds the first names gets the first letter.
    letters = dict.fromkeys(names, "")
    for group, letter in zip(groups, ascii_letters, strict=False):
        for name in group:
            letters[name] += letter
    return letters


def _split_groups(
    groups: Sequence[frozenset[str]], pair: frozenset[str]
) -> list[frozenset[str]]:
    """Split groups so that none has both of a pair, and none is a part of another one."""
    kept = []
    halves: set[frozenset[str]] = set()
    for group in groups:
        # A group with both becomes two, each without one of them: Piepho's insertion step.
        if pair <= group:
            halves.update(group - {name} for name in pair)
        else:
            kept.append(group)

    # What lies in a larger group says nothing of its own: his absorption step.
    candidates = [*kept, *halves]
    for half in halves:
        if not any(half < group for group in candidates):
            kept.append(half)
    return kept


def _find_different(
    run: Run, cells: pd.DataFrame, scores: dict[str, pd.DataFrame], metric: Metric
) -> set[frozenset[str]]:
    """Find the pairs of losses whose difference is significant."""
    import pandas as pd

    differences = pd.DataFrame([*_compare_cells(run, cells, scores, metric)])
    if differences.empty:
        return set()
    p_values: dict[Any, float] = {}
    for pair, seeds in differences.groupby("pair", sort=False):
        p_values[pair] = gain_of(seeds)["p"]

    # Among so many pairs some differ by chance alone.
    corrected = holm([*p_values.values()])
    pairs = zip(p_values, corrected, strict=True)
    return {frozenset(pair) for pair, p in pairs if p < LEVEL}


def _compare_cells(
    run: Run, cells: pd.DataFrame, scores: dict[str, pd.DataFrame], metric: Metric
) -> Iterator[dict[str, Any]]:
    """Compare the pairs of cells that differ in their loss alone: rows as `gain_of` reads them."""
    for key, addresses in _group_addresses(run, cells).items():
        for pair in combinations(addresses, 2):
            first, second = (scores[addresses[loss]] for loss in pair)
            # Cells may have a part of their examples in common.
            if not first.index.equals(second.index):
                first, second = first.align(second, join="inner", axis=0)
            values = pseudo_values(metric, first, second)
            if values is not None:
                yield {
                    "pair": pair,
                    "seed": key.seed,
                    **_test_difference(metric, values),
                }


def _group_addresses(run: Run, cells: pd.DataFrame) -> dict[CellKey, dict[str, str]]:
    """Group the addresses of cells that differ in their loss alone, by loss."""
    described = {cell["address"]: cell for cell in run.manifest["cells"]}
    by_key: dict[CellKey, dict[str, str]] = {}
    in_order = cells.sort_values("loss")
    for address, loss in zip(in_order["address"], in_order["loss"], strict=True):
        key = cell_key(described[address])._replace(reference=None)
        # How many trials a loss was tuned over is a part of that loss here.
        by_key.setdefault(key._replace(loss="", budget=0), {})[loss] = address
    return by_key


def _test_difference(metric: Metric, values: list[float]) -> dict[str, Any]:
    """Test a difference: of a share by McNemar's test as a comparison does, of another metric by a
    t-test of its pseudo-values, where a comparison has the bootstrap."""
    from scipy.stats import t

    n = len(values)
    mean = fmean(values)
    comparison = {"difference": mean, "n": n, "jackknife": values}
    # A share of examples is better, worse or the same in each of them.
    if isinstance(metric, Percentage) and {*values} <= {-100.0, 0.0, 100.0}:
        b = values.count(100.0)
        c = values.count(-100.0)
        low, high = tango(b, c, n)
        return {
            **comparison,
            "b": b,
            "c": c,
            "p": mcnemar_p(b, c),
            "low": low,
            "high": high,
        }

    # Values that are all the same have no error to test by.
    model = fit([values])
    p = 2 * t.sf(abs(mean) / model.error, model.df) if model.error else math.nan
    absent = dict.fromkeys(("b", "c", "low", "high"), math.nan)
    return {**comparison, "p": p, **absent}
