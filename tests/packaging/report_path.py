"""What the lowest versions and the lock must do alike: `python -m tests.packaging.report_path`.

Writes, into the current folder, a synthetic run of every task of the paper and a small one, their
reports and the scores of two files of completions, with the commands of the package.
"""

from __future__ import annotations

import json
from pathlib import Path

from smmd_bench.cli import cli
from smmd_bench.plugin_system import registry
from smmd_bench.results.frames import read_run

from ..arithmetic_problems import answers_of, problems
from ..runs import write_run

TASKS = ("arithmetic[operations=1..2]", "gsm8k", "svamp", "clock_time", "chartqa", "samsum")
LOSSES = ("ce", "smmd", "smmd[kernel=random,term=mmd]", "smmd[term=mmd]")
SWEEP = ("ce", "smmd", "smmd[sigma=1]", "smmd[sigma=3]")
TABLES = (
    "arithmetic_table", "math_table", "clock_table", "chart_table", "samsum_table", "task_table",
    "terms_table", "kernel_table", "dataset_sizes", "scale_errors",
)  # fmt: skip


def main() -> None:
    """All of it; what the commands print goes to the output."""
    write_run(Path("run"), tasks=TASKS, losses=LOSSES, n=40, steps=30, resamples=100)
    write_run(Path("small"), losses=("ce", "smmd"), seeds=(0,), n=40, steps=30, resamples=100)
    _transfer(Path("run"))
    examples = problems(40, 0)
    for label, skill in (("ce", 0.4), ("smmd", 0.6)):
        answers = answers_of(examples, skill, 1)[["completion"]]
        answers.to_json(f"{label}.jsonl", orient="records", lines=True)
    commands = (
        f"report run --only {' --only '.join(TABLES)} --json",
        "report small --format csv,markdown,latex,png --json",
        "compare small run --metric all --json",
        "score --task arithmetic --predictions ce.jsonl --predictions smmd.jsonl --limit 40 --json",
        "ls tasks",
    )
    for command in commands:
        print(f"$ {command}")
        cli.main(command.split(), standalone_mode=False)
    write_run(Path("sweep"), losses=SWEEP, seeds=(0,), n=4, steps=2, resamples=10)
    for name in ("loss_shapes", "bandwidth_table", "sigma_sensitivity"):
        print(name, registry.load("reports", name).skip(read_run("sweep")), sep=": ")
    cells = read_run("run").cells
    trained_on = cells["trained_on"]
    assert list(trained_on.dropna().unique()) == ["gsm8k"]
    print(json.dumps({str(name): str(kind) for name, kind in cells.dtypes.items()}))


def _transfer(run: Path) -> None:
    """Make the tests of SVAMP tests of transfer, as a training on GSM8K has them."""
    for file in run.glob("cells/*/cell.json"):
        cell = json.loads(file.read_text())
        if cell["task"] == "svamp" and cell["loss"] != "base":
            file.write_text(json.dumps({**cell, "trained_on": "gsm8k"}))


if __name__ == "__main__":
    main()
