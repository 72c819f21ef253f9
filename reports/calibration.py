"""Calibration of the digit distributions: is the most probable number right as often as it says?

The plain expected calibration error (Naeini et al. 2015) is too large on average: the noise of a
bin counts as a gap between accuracy and confidence. A resample adds such noise once more, which the
basic bootstrap takes off: as Kumar, Liang and Ma (2019, "Verified uncertainty calibration"), the
estimate and the ends of its interval are 2 x error - quantile of the resampled errors (50, 97.5 and
2.5 %).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from smmd_bench.contracts import Artefact, Run, parameter
from smmd_bench.publishing.style import GREY, add_legend, loss_label, loss_styles
from smmd_bench.publishing.tables import number, with_interval

from ._cells import (
    KEY,
    NO_PROBES,
    PAIR,
    Pair,
    identity,
    in_order,
    main_losses,
    of_pair,
    with_numbers,
)
from ._panels import FEWEST as EXAMPLES
from ._panels import LIMITS, panel_grid, select_panels
from ._text import NOTES, caption, row_head, row_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GROUPS, LOSSES = 6, 7
"""Panels, and losses in each, drawn at most; table and CSV have all."""
FEWEST = 20
"""Positions that a bin needs to be drawn."""
RESAMPLES = 1000
_VALUES_A_BATCH = 1 << 20
"""Weights of examples held at a time: 8 MiB of float64."""
_COLUMNS = ["digit", "target_value", "argmax_value", "maximum"]
SHOWN = (
    "Confidence (the largest probability over V_num) against accuracy (how often that number is "
    "the target) at every numeric token of the targets, given the true text before it, those of a "
    "rationale included; below the diagonal a model is too sure. Below: the share of the "
    "positions. ECE: without the bias by the noise of the bins, as far as a bootstrap over "
    "examples shows it, mean over seeds with its basic interval; plain ECE has that bias. Bins of "
    f"fewer than {FEWEST} positions are not drawn. {LIMITS}"
)


def _bins(value: int) -> str | None:
    return None if 2 <= value <= 100 else "must be from 2 to 100"


@dataclass(frozen=True)
class Calibration:
    """Reliability diagrams, and the expected calibration error over V_num."""

    name: ClassVar[str] = "calibration"
    title: ClassVar[str] = "Calibration of the digit distributions"
    paper: ClassVar[str] = "not in the paper"

    bins: int = parameter(15, "equally wide bins of confidence", check=_bins)

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
        cells = _cells(run, self.bins)
        data, errors = _data(cells, self.bins), _errors(cells)
        examples = errors.groupby(PAIR, observed=True)["examples"].transform("max")
        drawn = select_panels(errors[examples >= EXAMPLES], GROUPS, LOSSES)
        figure = _figure(data, drawn, self.bins) if drawn else None
        table = row_table(_rows(errors), self.title)
        return Artefact(caption(run, run.cells, SHOWN), table, figure, data, NOTES)


@dataclass(frozen=True, slots=True)
class Binned:
    """The positions of one cell, summed by example and bin of confidence.

    `gap` [examples, bins] is the sum of (right - confidence), `size` [examples] the number of
    positions; `count`, `right` and `confidence` [bins] are sums over all of them.
    """

    gap: NDArray[Any]
    size: NDArray[Any]
    count: NDArray[Any]
    right: NDArray[Any]
    confidence: NDArray[Any]

    @property
    def error(self) -> float:
        """The mean over positions of |accuracy - confidence| of their bin, not corrected."""
        return float(np.abs(self.gap.sum(axis=0)).sum() / self.size.sum())


def binned(probes: pd.DataFrame, bins: int) -> Binned:
    """The probes of one cell: digit, target_value, argmax_value, maximum.

    Bins are those of `sklearn.calibration.calibration_curve(strategy="uniform")`.
    """
    example = (probes["digit"] == 0).cumsum().to_numpy(np.int64) - 1  # [M]; 0: a new example
    right = (probes["argmax_value"] == probes["target_value"]).to_numpy(np.float64)
    confidence = probes["maximum"].to_numpy(np.float64)
    at = np.searchsorted(np.linspace(0, 1, bins + 1)[1:-1], confidence)  # [M]
    n = int(example[-1]) + 1
    gap = np.bincount(example * bins + at, right - confidence, minlength=n * bins)
    count, rights, sums = (np.bincount(at, w, minlength=bins) for w in (None, right, confidence))
    size = np.bincount(example, minlength=n)
    return Binned(gap.reshape(n, bins), size, count, rights, sums)


def corrected_error(seeds: list[Binned]) -> tuple[float, float, float]:
    """The mean of the seeds' calibration errors, corrected, and its 95 % interval.

    The examples are resampled, with all their positions, the same for every seed; what would be
    below 0 is 0. Nothing is known of a single example, nor of seeds with different examples.
    """
    from scipy.stats import bootstrap

    n, bins = seeds[0].gap.shape
    if n < 2 or any(len(seed.gap) != n for seed in seeds):
        return np.nan, np.nan, np.nan
    gaps = np.concatenate([seed.gap for seed in seeds], axis=1)  # [n, seeds * bins]
    sizes = np.column_stack([seed.size for seed in seeds])  # [n, seeds]

    def error(drawn: NDArray[np.int64], axis: int) -> NDArray[np.float64]:
        """[...] of resampled examples, [..., n]."""
        weights = np.apply_along_axis(np.bincount, axis, drawn, minlength=n).astype(np.float64)
        absolute = np.abs(weights @ gaps).reshape(*drawn.shape[:-1], len(seeds), bins).sum(axis=-1)
        return np.asarray((absolute / (weights @ sizes)).mean(axis=-1))

    found = bootstrap(
        (np.arange(n),), error, vectorized=True, n_resamples=RESAMPLES, method="basic",
        batch=max(1, min(RESAMPLES, _VALUES_A_BATCH // n)), rng=np.random.default_rng(0),
    )  # fmt: skip
    middle = 2 * error(np.arange(n), -1) - np.median(found.bootstrap_distribution)
    low, high = found.confidence_interval
    return max(0.0, float(middle)), max(0.0, float(low)), max(0.0, float(high))


def _cells(run: Run, bins: int) -> pd.DataFrame:
    """One row a cell that has probes: model, task, loss, seed, its `Binned` probes, examples."""
    rows = []
    for cell in run.cells.to_dict("records"):
        probes = run.read("probes", _COLUMNS, [str(cell["address"])])
        if len(probes):
            found = binned(probes, bins)
            rows.append({**identity(cell), "binned": found, "examples": len(found.size)})
    return in_order(pd.DataFrame(rows), run.cells)


def _data(cells: pd.DataFrame, bins: int) -> pd.DataFrame:
    """One row a model, task, loss, seed and bin that is not empty."""
    edges = np.linspace(0, 1, bins + 1)
    parts = []
    for cell in cells.to_dict("records"):
        found: Binned = cell["binned"]
        columns = {**identity(cell), "bin_from": edges[:-1], "bin_to": edges[1:], "n": found.count}
        part = pd.DataFrame(columns)[found.count > 0]
        sums = pd.DataFrame({"confidence": found.confidence, "accuracy": found.right})
        parts.append(part.join(sums.div(part["n"], axis=0)))
    return in_order(pd.concat(parts, ignore_index=True), cells)


def _errors(cells: pd.DataFrame) -> pd.DataFrame:
    """One row a model, task and loss: its error over the seeds, plain and corrected."""
    rows = []
    for key, group in cells.groupby(KEY, observed=True):
        seeds = [*group["binned"]]
        sizes = [int(seed.size.sum()) for seed in seeds]
        row = dict(zip(KEY, key, strict=True)) | {"seeds": len(seeds), "positions": max(sizes)}
        row |= dict(zip(("error", "low", "high"), corrected_error(seeds), strict=True))
        row["examples"] = group["examples"].max()
        row["plain"] = float(np.mean([seed.error for seed in seeds]))
        row["accuracy"] = sum(seed.right.sum() for seed in seeds) / sum(sizes)
        row["confidence"] = sum(seed.confidence.sum() for seed in seeds) / sum(sizes)
        rows.append(row)
    return in_order(pd.DataFrame(rows), cells)


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


def _figure(data: pd.DataFrame, drawn: dict[Pair, list[str]], bins: int) -> Figure:
    """Reliability, and below it how the positions are shared out over the bins."""
    figure, axes = panel_grid(drawn, 4.0, parts=(3, 1))
    styles, edges = loss_styles(data["loss"].cat.categories), np.linspace(0, 1, bins + 1)
    sums = data.assign(right=data["accuracy"] * data["n"], sure=data["confidence"] * data["n"])
    panels = zip(axes[::2].flat, axes[1::2].flat, drawn.items(), strict=False)
    for above, below, (pair, losses) in panels:
        here = of_pair(sums, pair)
        for loss in losses:
            by_bin = here[here["loss"] == loss].groupby("bin_from")[["n", "right", "sure"]].sum()
            enough = by_bin[by_bin["n"] >= FEWEST]
            clip = enough.empty  # else the markers at 1 are cut; of no points a layout fails
            how = styles[loss].plotted(4, linewidth=1.3, clip_on=clip, label=loss_label(loss))
            above.plot(enough["sure"] / enough["n"], enough["right"] / enough["n"], **how)
            shares = (by_bin["n"] / by_bin["n"].sum()).reindex(edges[:-1], fill_value=0)
            below.stairs(shares, edges, **styles[loss].lined(linewidth=1.1))
        above.plot([0, 1], [0, 1], color=GREY, linestyle=":", linewidth=1, zorder=1)
        above.set(xlim=(0, 1), ylim=(0, 1), ylabel="Accuracy")
        above.tick_params(labelbottom=False)
        below.set(xlim=(0, 1), xlabel="Confidence", ylabel="Share")
        below.set_ylim(bottom=0)
    add_legend(figure)
    return figure
