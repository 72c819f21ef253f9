"""How often the 95 % interval of several seeds holds the true difference, by simulation, and how
often its test finds the difference that it says it finds with a probability of 80 %.

`python benchmarks/coverage.py` draws tables of paired differences, seeds by examples, from normal
effects of seed, example and both, and fits `smmd_bench.scoring.crossed` to each. In parentheses
stands Student's interval over the seeds' means, which knows nothing of the examples.
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy.stats import t
from statsmodels.stats.proportion import proportion_confint

from smmd_bench.publishing.tables import to_markdown
from smmd_bench.scoring.crossed import fit
from smmd_bench.scoring.gain import smallest_by_t

SEEDS = (2, 3, 5, 10)
OF_SEED = (0.0, 0.5, 1.0, 2.0)
"""Standard deviations of the seeds, in units of the standard error over the examples."""
CLAIMS = 200
"""Draws that the median of what a test says it finds is taken of."""


def coverage(
    seeds: int,
    of_seed: float,
    draws: int,
    rng: np.random.Generator,
    examples: int = 200,
) -> tuple[float, float, float]:
    """The shares of intervals that hold the truth, of the mixed model and of the t-test over seeds;
    and the share of tests that find the median of the smallest differences that they say they find.
    A third of the variance of examples is shared."""
    shared, own = np.sqrt(examples / 3), np.sqrt(2 * examples / 3)
    held, tests = np.zeros(2), []
    for _ in range(draws):
        table = (
            of_seed * rng.standard_normal((seeds, 1))
            + shared * rng.standard_normal((1, examples))
            + own * rng.standard_normal((seeds, examples))
        )
        found = fit(table)
        mean, over_seeds = float(table.mean()), float(table.mean(axis=1).std(ddof=1))
        of_model, of_seeds = (
            (found.error, found.df),
            (over_seeds / np.sqrt(seeds), seeds - 1),
        )
        tests.append((mean, *of_model))
        for at, (error, df) in enumerate([of_model, of_seeds]):
            low, high = t.interval(0.95, df, mean, error)
            held[at] += low <= 0 <= high
    claim = float(
        np.median([smallest_by_t(error, df, 0.05) for _, error, df in tests[:CLAIMS]])
    )
    power = np.mean(
        [2 * t.sf(abs(mean + claim) / error, df) < 0.05 for mean, error, df in tests]
    )
    return float(held[0] / draws), float(held[1] / draws), float(power)


def main() -> None:
    """Print the tables, as docs/statistics.md has them."""
    import pandas as pd

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=2000)
    draws = parser.parse_args().draws
    rng = np.random.default_rng(0)
    intervals, powers = [], []
    for seeds in SEEDS:
        shares = {f"{x:g}": coverage(seeds, x, draws, rng) for x in OF_SEED}
        held = {
            name: f"{100 * a:.1f} ({100 * b:.1f})" for name, (a, b, _) in shares.items()
        }
        intervals.append({"Seeds": seeds} | held)
        powers.append(
            {"Seeds": seeds} | {x: f"{100 * c:.0f}" for x, (*_, c) in shares.items()}
        )
    for title, rows in (
        ("Intervals that hold the truth", intervals),
        ("Power", powers),
    ):
        print(f"{title} (%)\n\n{to_markdown(pd.DataFrame(rows))}\n")
    low, high = proportion_confint(round(0.95 * draws), draws, method="wilson")
    print(
        f"{draws:,} draws: by chance 95 % may read {100 * low:.1f} to {100 * high:.1f} %."
    )


if __name__ == "__main__":
    main()
