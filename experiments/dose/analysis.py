"""The registered analysis of the runs of this folder, as README.md says: done once.

python experiments/dose/analysis.py runs/dose-arithmetic
"""

import sys
from fractions import Fraction

import numpy as np
import pandas as pd
from scipy.stats import t
from statsmodels.stats.multitest import multipletests

import smmd_bench as sb
from smmd_bench.plugin_system.parameters import split_spec
from smmd_bench.scoring.crossed import fit

SEEDS = (0, 1, 2)
LARGEST_RATIO = 1.5
"""Of two doses that count as equal."""
NUMERIC_LOSSES = ("smmd", "ntl", "nl_ntl")
SHUFFLED = "smmd[kernel=shuffled"


def family_of(loss: str) -> str:
    """The loss without its lambda; the shuffled kernel is a loss of its own."""
    return "shuffled" if loss.startswith(SHUFFLED) else split_spec(loss)[0]


def read_outcomes(run) -> pd.DataFrame:
    """Exact match and wrong signs, in percent, by task, loss, seed and example."""
    rows = run.completions.query("loss != 'base' and seed in @SEEDS").copy()
    answers = rows["answer"].map(lambda text: float(Fraction(text)))
    given = rows["parsed"].astype(float).fillna(0.0)
    rows["exact match"] = 100.0 * rows["exact"]
    rows["wrong signs"] = 100.0 * (np.sign(given) * np.sign(answers) < 0)
    return rows


def read_doses(run) -> dict[tuple[str, str], float]:
    """The mean of weighted auxiliary over cross-entropy, over all steps of all seeds."""
    log = run.train_log.query("seed in @SEEDS").dropna(subset="relative_auxiliary")
    return (
        log.groupby(["task", "loss"], observed=True)["relative_auxiliary"]
        .mean()
        .to_dict()
    )


def choose_pairs(
    doses: dict[str, float], families, controls: str
) -> list[tuple[str, str]]:
    """Each loss of these families with the control of the nearest dose, if that is as large."""
    pairs = []
    others = [loss for loss in doses if family_of(loss) == controls]
    for loss in (loss for loss in doses if others and family_of(loss) in families):
        ratios = {other: abs(np.log(doses[loss] / doses[other])) for other in others}
        nearest = min(ratios, key=ratios.__getitem__)
        if ratios[nearest] <= np.log(LARGEST_RATIO):
            pairs.append((loss, nearest))
    return pairs


def compare(rows: pd.DataFrame, pairs, outcome: str) -> pd.DataFrame:
    """The paired differences by the mixed model of seeds and examples, p by Holm over the pairs."""
    table = rows.pivot_table(outcome, ["loss", "seed"], "uid", observed=True)
    lines = []
    for loss, other in pairs:
        differences = (table.loc[loss] - table.loc[other]).to_numpy()
        model, mean = fit(differences), differences.mean()
        half = t.ppf(0.975, model.df) * model.error
        p = 2 * t.sf(abs(mean) / model.error, model.df)
        lines.append((loss, other, mean, mean - half, mean + half, p))
    result = pd.DataFrame(
        lines, columns=["loss", "against", "difference", "low", "high", "p"]
    )
    result["p (Holm)"] = multipletests(result["p"], method="holm")[1] if lines else []
    return result


def main(path: str) -> None:
    """Print the doses and every registered test of a run."""
    run = sb.read_run(path)
    doses = read_doses(run)
    for task, rows in read_outcomes(run).groupby("task", observed=True):
        of_task = {loss: dose for (name, loss), dose in doses.items() if name == task}
        quieter = [
            loss for loss in of_task if family_of(loss) == "smmd" and loss != "smmd"
        ]
        print(f"\n{task}\n{pd.Series(of_task, name='dose').round(3).to_string()}")
        tests = {
            "A1, wrong signs": ([(loss, "smmd") for loss in quieter], "wrong signs"),
            "A2, exact match": ([(loss, "ce") for loss in quieter], "exact match"),
            "B, exact match": (
                choose_pairs(of_task, ["smmd"], "shuffled"),
                "exact match",
            ),
            "C, exact match": (
                choose_pairs(of_task, NUMERIC_LOSSES, "numeric_ce"),
                "exact match",
            ),
        }
        for name, (pairs, outcome) in tests.items():
            print(
                f"\n{name}\n{compare(rows, pairs, outcome).round(3).to_string(index=False)}"
            )


if __name__ == "__main__":
    main(sys.argv[1])
