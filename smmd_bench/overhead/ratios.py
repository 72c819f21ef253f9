"""From steps and peaks to the numbers of the table: one line a row, in full precision."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from .settings import CE, STOCK

CLOCKS = ("wall", "cpu")
REFERENCES = {"ce": CE, "stock": STOCK}
_RESAMPLES = 2000


class Ratio(NamedTuple):
    """A median of paired ratios; low and high are None for a single pair."""

    value: float
    low: float | None
    high: float | None


def step_ratio(kept: pd.DataFrame, row: str, against: str, clock: str) -> Ratio | None:
    """The median over steps of row : against, with its 95% percentile bootstrap interval.

    Steps are paired by repeat and number, and resampled as pairs. None where no pair is.
    `kept`: lines of steps.parquet that are not dropped; clock: "wall" or "cpu".
    """
    ratios = _ratios(kept, row, against, f"{clock}_seconds")  # [pairs]
    if ratios.empty:
        return None
    value = float(np.median(ratios))
    if ratios.size == 1 or np.ptp(ratios) == 0:
        return Ratio(value, *((None, None) if ratios.size == 1 else (value, value)))
    from scipy.stats import bootstrap

    bounds = bootstrap(
        (ratios,), np.median, n_resamples=_RESAMPLES, method="percentile", rng=0
    ).confidence_interval
    return Ratio(value, float(bounds.low), float(bounds.high))


def memory_ratio(runs: pd.DataFrame, row: str, against: str) -> Ratio | None:
    """The median over repeats of the peaks' ratio, with the smallest and the largest one."""
    ratios = _ratios(runs.assign(step=0), row, against, "peak_bytes")  # [repeats]
    if ratios.empty:
        return None
    return Ratio(float(ratios.median()), float(ratios.min()), float(ratios.max()))


def overhead_frame(steps: pd.DataFrame, runs: pd.DataFrame, rows: Sequence[str]) -> pd.DataFrame:
    """One line a row: times in ms, peak memory in GB (10^9 bytes), ratios to CE here and to stock.

    Means and sample deviations are over the repeats' own means. `_repeat_low` and `_repeat_high`
    are the smallest and largest median of one repeat alone: how far one process is from another.
    """
    kept = steps[~steps["dropped"].astype(bool)]
    done = runs[runs["error"].isna()]
    lines = []
    for row in rows:
        own, peaks = kept[kept["row"] == row], done[done["row"] == row]["peak_bytes"].dropna()
        line: dict[str, Any] = {
            "row": row,
            "repeats": own["repeat"].nunique(),
            "steps": len(own),
            "memory_gb": float(peaks.median()) / 1e9 if len(peaks) else None,
        }
        for clock in CLOCKS:
            means = 1000 * own.groupby("repeat")[f"{clock}_seconds"].mean()
            line[f"{clock}_ms"] = means.mean()
            line[f"{clock}_ms_deviation"] = means.std(ddof=1)
        for name, against in REFERENCES.items():
            for clock in CLOCKS:
                line |= _columns(f"{clock}_to_{name}", step_ratio(kept, row, against, clock))
                medians = _ratios(kept, row, against, f"{clock}_seconds").groupby("repeat").median()
                line[f"{clock}_to_{name}_repeat_low"] = min(medians, default=None)
                line[f"{clock}_to_{name}_repeat_high"] = max(medians, default=None)
            line |= _columns(f"memory_to_{name}", memory_ratio(done, row, against))
        errors = runs[(runs["row"] == row) & runs["error"].notna()]
        line["error"] = "; ".join(
            f"repeat {repeat + 1}: {error}"
            for repeat, error in zip(errors["repeat"], errors["error"], strict=True)
        )
        lines.append(line)
    return pd.DataFrame(lines)


def _ratios(frame: pd.DataFrame, row: str, against: str, column: str) -> pd.Series:
    """The ratio of a column between two rows, over the (repeat, step) that both have."""
    table = frame.pivot(index=["repeat", "step"], columns="row", values=column).astype("float64")
    both = table.reindex(columns=list(dict.fromkeys((row, against)))).dropna()
    return both[row] / both[against]


def _columns(name: str, ratio: Ratio | None) -> dict[str, float | None]:
    names = (name, f"{name}_low", f"{name}_high")
    return dict(zip(names, ratio or (None, None, None), strict=True))
