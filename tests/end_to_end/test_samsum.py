"""A task without numbers as answers, from training to Table 11."""

import json
from pathlib import Path

import pytest

import smmd_bench as sb

from .conftest import CommandLine

DATA = Path(__file__).parents[1] / "data"
pytestmark = [pytest.mark.engine, pytest.mark.slow]


def test_summaries_are_trained_scored_and_compared(smmd_bench: CommandLine, tmp_path: Path) -> None:
    result = smmd_bench(
        "train-eval", "--task", "samsum", "--losses", "smmd", "--data-dir", str(DATA),
        "--engine", "transformers", "--epochs", "1", "--set", "batch_size=4",
        "--set", "micro_batch_size=4", "--out", str(tmp_path / "run"),
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    assert "SAMSum dialogue summarization" in result.stdout
    run = sb.read_run(tmp_path / "run")
    assert set(run.metrics["metric"]) == {"rouge1", "rouge2", "rougeL", "truncation_rate"}
    assert set(run.selection["selection_metric"]) == {"rougeL"}
    compared = run.comparisons.set_index(["loss", "metric"])
    assert compared.loc[("smmd", "rougeL"), "against_loss"] == "base"
    assert compared["p"].isna().all()
    (ours,) = run.cells.loc[run.cells["loss"] == "smmd", "address"]
    counts = json.loads((run.path / "cells" / ours / "train.json").read_text())["numeric_targets"]
    assert counts["tokens"] > counts["numeric"] == counts["covered"] == 15
    share = f"{counts['numeric']} of {counts['tokens']}"
    caption = (run.path / "reports" / "index.html").read_text()
    assert f"training set that are numeric: {share}" in caption
    tables = {file.stem for file in (run.path / "reports" / "tables").glob("*.md")}
    assert "samsum_table" in tables
    assert not tables & {"scale_errors", "error_histogram", "digit_distribution"}
