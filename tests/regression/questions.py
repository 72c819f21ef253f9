"""MMLU in the hub's layout, with questions of our own: sums, for every subject."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from smmd_bench.regression.suites import subjects

TEST, DEV = 2, 5
NOT_COPIED = ("all", "auxiliary_train")


def write_mmlu(folder: Path) -> None:
    """README.md and, for each of the 57 subjects, 2 test questions and 5 shots.

    As in a copy of the hub's, README.md names two more parts, which nobody needs to copy.
    """
    lines = ["---", "configs:"]
    for number, subject in enumerate(sorted([*subjects(), *NOT_COPIED])):
        lines += [f"- config_name: {subject}", "  data_files:"]
        for split, count in (("dev", DEV), ("test", TEST)):
            lines += [f"  - split: {split}", f"    path: {subject}/{split}-*"]
            if subject in NOT_COPIED:
                continue
            rows = [
                _question(number, at + (DEV if split == "test" else 0))
                for at in range(count)
            ]
            file = folder / subject / f"{split}-00000-of-00001.parquet"
            file.parent.mkdir(parents=True, exist_ok=True)
            pd.DataFrame(rows).to_parquet(file)
    (folder / "README.md").write_text("\n".join([*lines, "---", ""]), encoding="utf-8")


def _question(subject: int, at: int) -> dict[str, object]:
    right = (subject + 3 * at) % 4
    total = subject + at
    return {
        "question": f"{subject}+{at}=",
        "subject": str(subject),
        "choices": [str(total + choice - right) for choice in range(4)],
        "answer": right,
    }
