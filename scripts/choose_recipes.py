"""Choose the recipes of a built-in checkpoint's card on validation data, with cross-entropy alone.

    python scripts/choose_recipes.py builtin/tiny FOLDER
    python scripts/choose_recipes.py builtin/tiny-vl FOLDER --task clock_time

Every task is fine-tuned with every point of its grid, one run folder each under FOLDER; what is
done already is not repeated. FOLDER/recipes.csv gets the metric that selects epochs, on validation
examples after the best epoch. A run scores 32 test examples, which the choice does not look at.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import pandas as pd

import smmd_bench

Point = tuple[int, int, str]  # training examples, epochs, learning rate
GRID: dict[str, dict[str, tuple[Point, ...]]] = {
    "builtin/tiny": {
        task: tuple((examples, 2, rate) for rate in ("2e-4", "5e-4", "1.5e-3"))
        for task, examples in {
            "arithmetic": 12000,
            "arithmetic[level=easy,operations=1..2]": 12000,
            "gsm8k": 4000,
            "samsum": 2000,
        }.items()
    },
    "builtin/tiny-vl": {
        "clock_time": ((1440, 2, "5e-4"), (1440, 2, "1.5e-3"), (2880, 3, "5e-4")),
        "chartqa[charts=plain]": ((1500, 2, "2e-4"), (1500, 2, "5e-4"), (2400, 2, "3e-4")),
    },
}
"""What is tried, by model and task; few enough examples for minutes on two cores."""
VALIDATION_EXAMPLES = {"builtin/tiny": 1000, "builtin/tiny-vl": 500}


def run_point(model: str, task: str, folder: Path, point: Point) -> dict[str, object]:
    """Fine-tune once and read the validation metric of the epoch that it selects."""
    examples, epochs, rate = point
    name = "".join(c if c.isalnum() else "-" for c in task).strip("-")
    out = folder / f"{name}-{examples}x{epochs}-{rate}"
    flags = [
        *("--task", task, "--losses", "ce", "--model", model, "--out", str(out)),
        *("--train-examples", str(examples), "--epochs", str(epochs), "--learning-rate", rate),
        *("--validation-examples", str(VALIDATION_EXAMPLES[model]), "--test-examples", "32"),
        *("--no-base", "--no-transfers", "--quiet"),
    ]
    subprocess.run([Path(sys.executable).with_name("smmd-bench"), "train-eval", *flags], check=True)
    run = smmd_bench.read_run(out)
    best = run.selection[run.selection["selected"]].iloc[0]
    point_of = dict(zip(("train_examples", "epochs", "learning_rate"), point, strict=True))
    metric = best["selection_metric"]
    return {"task": task, **point_of, "metric": metric, "value": best[metric], "folder": out.name}


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    flags.add_argument("model", choices=list(GRID))
    flags.add_argument("folder", type=Path)
    flags.add_argument("--task", action="append", help="this task alone")
    arguments = flags.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for task, points in GRID[arguments.model].items():
        for point in points if task in (arguments.task or [task]) else ():
            rows.append(run_point(arguments.model, task, arguments.folder, point))
            (table := pd.DataFrame(rows)).to_csv(arguments.folder / "recipes.csv", index=False)
            print(table.tail(1).to_string(header=len(rows) == 1, index=False), flush=True)


if __name__ == "__main__":
    main()
