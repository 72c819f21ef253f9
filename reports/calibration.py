"""Calibration of the digit distributions: is the most probable number right as often as it says?

The plain expected calibration error (Naeini et al. 2015) counts the noise of a bin as a gap between
accuracy and confidence. As Kumar, Liang and Ma (2019, "Verified uncertainty calibration"), the
basic bootstrap takes it off: the estimate and the ends of its interval are 2 x error - quantile of
the resampled errors (50, 97.5 and 2.5 %).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from smmd_bench.contracts import Artefact, Run
from smmd_bench.publishing.style import GREY, add_legend, loss_label, loss_styles
from smmd_bench.publishing.tables import number, with_interval

from ._cells import KEY, NO_PROBES, PAIR, Pair, in_order, main_losses, of_pair, with_numbers
from ._panels import FEWEST as EXAMPLES
from ._panels import LIMITS, panel_grid, select_panels
from ._text import NOTES, caption, row_head, row_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GROUPS, LOSSES = 6, 7
"""Panels, and losses in each, drawn at most; table and CSV have all."""
FEWEST = 20
"""Positions that a bin needs to be drawn."""
BINS, RESAMPLES = 15, 1000
_COLUMNS = ["digit", "target_value", "argmax_value", "maximum"]
SHOWN = (
    "Confidence (the largest probability over V_num) against accuracy at every numeric token of "
    "the targets, given the true text before it; below the diagonal a model is too sure. ECE is "
    f"without the bias by the noise of the bins, which plain ECE has. Bins of fewer than {FEWEST} "
    f"positions are not drawn. {LIMITS}"
)


@dataclass(frozen=True)
class Calibration:
    """Reliability diagrams, and the expected calibration error over V_num."""

    name: ClassVar[str] = "calibration"
    title: ClassVar[str] = "Calibration of the digit distributions"
    paper: ClassVar[str] = "not in the paper"

    def skip(self, run: Run) -> str | None:
        """Digit probes of answers that are numbers are needed."""
        if run.having("probes").empty:
            return NO_PROBES
        cells = with_numbers(run)["address"]
        some = any(len(run.read("probes", ["digit"], [address])) for address in cells)
        return None if some else "no task with probes has numbers as answers"

    def build(self, run: Run) -> Artefact:
        """One panel a model and task, one line a loss."""
        run = main_losses(run)
        run = run.only(with_numbers(run))
        bins, rows = [], []
        for key, cells in run.having("probes").groupby(KEY, observed=True):
            names: dict[str, Any] = dict(zip(KEY, key, strict=True))
            read: list[Binned] = []
            for seed, address in zip(cells["seed"], cells["address"], strict=True):
                probes = run.read("probes", _COLUMNS, [address])
                if len(probes):
                    read.append(binned(probes))
                    bins.append(read[-1].by_bin.assign(**names, seed=seed))
            if read:
                rows.append({**names, **_summary(read)})
        data = in_order(pd.concat(bins, ignore_index=True), run.cells)
        data = data[[*KEY, "seed", "bin_from", "bin_to", "n", "confidence", "accuracy"]]
        errors = in_order(pd.DataFrame(rows), run.cells)
        examples = errors.groupby(PAIR, observed=True)["examples"].transform("max")
        drawn = select_panels(errors[examples >= EXAMPLES], GROUPS, LOSSES)
        figure = _figure(data, drawn) if drawn else None
        table = row_table(_rows(errors), self.title)
        return Artefact(caption(run, run.cells, SHOWN), table, figure, data, NOTES)


@dataclass(frozen=True, slots=True)
class Binned:
    """The positions of one cell, summed by example and bin of confidence.

    `gap` [examples, bins] is the sum of (right - confidence), `size` [examples] the number of
    positions; `by_bin` has the bins that are not empty.
    """

    gap: NDArray[Any]
    size: NDArray[Any]
    by_bin: pd.DataFrame

    @property
    def error(self) -> float:
        """The mean over positions of |accuracy - confidence| of their bin, not corrected."""
        return float(np.abs(self.gap.sum(axis=0)).sum() / self.size.sum())


def binned(probes: pd.DataFrame, bins: int = BINS) -> Binned:
    """The probes of one cell: digit, target_value, argmax_value, maximum.

    Bins are those of `sklearn.calibration.calibration_curve(strategy="uniform")`.
    """
    example = (probes["digit"] == 0).cumsum().to_numpy(np.int64) - 1  # [M]; 0: a new example
    right = (probes["argmax_value"] == probes["target_value"]).to_numpy(np.float64)
    confidence = probes["maximum"].to_numpy(np.float64)
    edges = np.linspace(0, 1, bins + 1)
    at = np.searchsorted(edges[1:-1], confidence)  # [M]
    gap = np.bincount(example * bins + at, right - confidence, (example[-1] + 1) * bins)
    count, rights, sums = (np.bincount(at, w, minlength=bins) for w in (None, right, confidence))
    by_bin = pd.DataFrame({"bin_from": edges[:-1], "bin_to": edges[1:], "n": count})[count > 0]
    by_bin["confidence"], by_bin["accuracy"] = (x[count > 0] / by_bin["n"] for x in (sums, rights))
    return Binned(gap.reshape(-1, bins), np.bincount(example), by_bin)


def corrected_error(seeds: list[Binned]) -> tuple[float, float, float]:
    """The mean of the seeds' calibration errors, corrected, and its 95 % interval.

    The examples are resampled, with all their positions, the same for every seed; what would be
    below 0 is 0. Nothing is known of a single example, nor of seeds with different examples.
    """
    n = len(seeds[0].gap)
    if n < 2 or any(len(seed.gap) != n for seed in seeds):
        return np.nan, np.nan, np.nan
    rng, resampled = np.random.default_rng(0), []
    for _ in range(RESAMPLES):
        weights = np.bincount(rng.integers(0, n, n), minlength=n)
        each = [np.abs(weights @ seed.gap).sum() / (weights @ seed.size) for seed in seeds]
        resampled.append(np.mean(each))
    value = np.mean([seed.error for seed in seeds])
    found = np.clip(2 * value - np.quantile(resampled, [0.5, 0.975, 0.025]), 0, None)
    return tuple(map(float, found))  # type: ignore[return-value]


def _summary(seeds: list[Binned]) -> dict[str, Any]:
    """The error of a loss over its seeds, plain and corrected, and what it is of."""
    every = pd.concat([seed.by_bin for seed in seeds])
    means = {
        x: (every[x] * every["n"]).sum() / every["n"].sum() for x in ("accuracy", "confidence")
    }
    return {
        **dict(zip(("error", "low", "high"), corrected_error(seeds), strict=True)),
        **means,
        "plain": float(np.mean([seed.error for seed in seeds])),
        "seeds": len(seeds),
        "examples": max(len(seed.size) for seed in seeds),
        "positions": max(int(seed.size.sum()) for seed in seeds),
    }


def _rows(errors: pd.DataFrame) -> Iterator[dict[str, str]]:
    for row in errors.to_dict("records"):
        yield {
            **row_head(row),
            "ECE (%)": with_interval(*(100 * row[name] for name in ("error", "low", "high"))),
            "Plain ECE (%)": number(100 * row["plain"], 2),
            "Confidence (%)": number(100 * row["confidence"], 1),
            "Accuracy (%)": number(100 * row["accuracy"], 1),
            "Seeds": str(row["seeds"]),
            "Examples": f"{row['examples']:,}",
            "Positions": f"{row['positions']:,}",
        }


def _figure(data: pd.DataFrame, drawn: dict[Pair, list[str]]) -> Figure:
    figure, axes = panel_grid(drawn, 3.0)
    styles = loss_styles(data["loss"].cat.categories)
    sums = data.assign(right=data["accuracy"] * data["n"], sure=data["confidence"] * data["n"])
    for axis, (pair, losses) in zip(axes, drawn.items(), strict=True):
        here = of_pair(sums, pair)
        for loss in losses:
            by_bin = here[here["loss"] == loss].groupby("bin_from")[["n", "right", "sure"]].sum()
            by_bin = by_bin[by_bin["n"] >= FEWEST]
            shares = by_bin[["sure", "right"]].div(by_bin["n"], axis=0).T.to_numpy()
            axis.plot(*shares, **styles[loss].plotted(4, linewidth=1.3, label=loss_label(loss)))
        axis.plot([0, 1], [0, 1], color=GREY, linestyle=":", linewidth=1, zorder=1)
        axis.set(xlim=(0, 1), ylim=(0, 1), xlabel="Confidence", ylabel="Accuracy")
    add_legend(figure)
    return figure
