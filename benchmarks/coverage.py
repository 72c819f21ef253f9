"""How often the 95 % interval of several seeds holds the true difference, by simulation.

`python benchmarks/coverage.py` draws tables of paired differences, seeds by examples, from normal
effects of seed, example and both, and fits `smmd_bench.scoring.crossed` to each.
"""

from __future__ import annotations

import argparse

import numpy as np

from smmd_bench.publishing.tables import to_markdown
from smmd_bench.scoring.crossed import fit, t_interval
from smmd_bench.scoring.proportions import wilson

SEEDS = (2, 3, 5, 10)
OF_SEED = (0.0, 0.5, 1.0, 2.0)
"""Standard deviations of the seeds, in units of the standard error over the examples."""


def coverage(
    seeds: int, of_seed: float, draws: int, rng: np.random.Generator, examples: int = 200
) -> float:
    """The share of intervals that hold the truth; a third of the variance of examples is shared."""
    shared, own = np.sqrt(examples / 3), np.sqrt(2 * examples / 3)
    held = 0
    for _ in range(draws):
        table = (
            of_seed * rng.standard_normal((seeds, 1))
            + shared * rng.standard_normal((1, examples))
            + own * rng.standard_normal((seeds, examples))
        )
        found = fit(table)
        low, high = t_interval(float(table.mean()), found.error, found.df)
        held += low <= 0 <= high
    return held / draws


def main() -> None:
    """Print the table, as docs/statistics.md has it."""
    import pandas as pd

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=2000)
    draws = parser.parse_args().draws
    rng = np.random.default_rng(0)
    rows = [
        {"Seeds": seeds}
        | {
            f"{of_seed:g}": f"{100 * coverage(seeds, of_seed, draws, rng):.1f}"
            for of_seed in OF_SEED
        }
        for seeds in SEEDS
    ]
    low, high = wilson(round(0.95 * draws), draws)
    print(to_markdown(pd.DataFrame(rows)))
    print(f"{draws:,} draws: by chance 95 % may read {100 * low:.1f} to {100 * high:.1f} %.")


if __name__ == "__main__":
    main()
