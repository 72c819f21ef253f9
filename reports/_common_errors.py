"""Answers of two losses to the same examples, and the place of their last digit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from smmd_bench.contracts import Run
from smmd_bench.results.baselines import REFERENCE
from smmd_bench.results.pairing import order_losses

from ._results import PAIR, require_numbers, select_measured


def select_common_errors(run: Run, columns: Sequence[str] = ()) -> pd.DataFrame:
    """One row an answer to an example that a loss and the reference both answer with a number.

    `pair` is the loss beside the reference, `loss` whose answer it is, `error` is |ŷ - y|, and
    `unit` the place of the last digit of true answers, as `find_unit` has it. The reference is
    cross-entropy, or the first loss where the run has none or did not train. Raises
    ReportSkippedError where no task has numbers.
    """
    has_numbers = run.cells["task"].isin(require_numbers(run))
    cells = select_measured(run.cells[has_numbers])
    cells = cells[cells["loss"] != "base"]
    blocks = []
    for _, group in cells.groupby(PAIR):
        # Model by model and task by task: the scores of a whole run may not fit into memory.
        losses = [*map(str, group["loss"].sort_values().unique())]
        reference = _select_reference(run, losses)
        wanted = dict.fromkeys(["uid", "error", "answer", *columns])
        scores = run.read("scores", [*wanted], group["address"])
        valid = scores.dropna(subset="error").astype({"error": "float64"})
        answers = valid["answer"].to_numpy(dtype=np.float64)
        valid["unit"] = find_unit(answers)

        for loss in losses:
            # Two rows of a seed and example: both losses answer it. The reference beside itself
            # has one of each, and so no block.
            of_both = valid[valid["loss"].isin([loss, reference])]
            is_common = of_both.duplicated(["seed", "uid"], keep=False)
            blocks.append(of_both[is_common].assign(pair=loss))
    if not blocks:
        return pd.DataFrame()
    return order_pairs(pd.concat(blocks), run)


def find_unit(answers: NDArray[np.float64]) -> float:
    """1 where half of the answers [n] are whole. Else the largest of 0.1, 0.01, 0.001 and 0.0001 of
    which nine in ten are multiples: 0.01 of prices; 1 where there is none, as of fractions."""
    if not answers.size or _share_of_multiples(answers, 0) >= 0.5:
        return 1.0
    for decimals in range(1, 5):
        if _share_of_multiples(answers, decimals) >= 0.9:
            return float(10.0**-decimals)
    return 1.0


def _share_of_multiples(answers: NDArray[np.float64], decimals: int) -> float:
    counts = answers * 10**decimals
    # 39.07 is 3907.0000000000005 hundredths.
    is_multiple = np.isclose(counts, counts.round(), rtol=1e-12, atol=1e-9)
    return float(is_multiple.mean())


def count_in_units(
    values: pd.Series[float], units: pd.Series[float]
) -> pd.Series[float]:
    """Values in their units: whole where they are whole but for rounding. One that is not 0 stays
    so, however small it is."""
    counts = values / units
    whole = counts.round()
    is_whole = np.isclose(counts, whole, rtol=1e-12, atol=1e-6) & (whole != 0)
    return counts.where(~is_whole, whole)


def describe_units(units: Iterable[float]) -> str:
    """A sentence on the units that are not 1; empty: there are none."""
    texts = [f"{unit:g}" for unit in sorted({*units}) if unit != 1]
    if not texts:
        return ""
    return f"Bins count errors in the last place of decimals, {' or '.join(texts)}."


def _select_reference(run: Run, losses: Sequence[str]) -> str:
    """Cross-entropy where it was trained here; a file of completions may be called `ce`, too."""
    if REFERENCE in losses and "predictions" not in run.manifest:
        return REFERENCE
    return losses[0]


def order_pairs(data: pd.DataFrame, run: Run) -> pd.DataFrame:
    """The frame with model, task, pair and loss as categoricals in the order of the run."""
    data = order_losses(data, run.cells)
    return data.assign(
        pair=pd.Categorical(data["pair"], run.cells["loss"].cat.categories)
    )
