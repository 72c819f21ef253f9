"""Another architecture from a local folder, with LoRA, at N = 1000."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from smmd_bench.plugin_system.registry import load_loss

from .conftest import CommandLine

pytestmark = [pytest.mark.engine, pytest.mark.slow]


def test_every_loss_as_an_adapter_of_a_llama_in_one_engine(
    smmd_bench: CommandLine, tiny_checkpoints: Callable[[str], Any], tmp_path: Path
) -> None:
    base = tiny_checkpoints("triple").base
    out = tmp_path / "run"
    result = smmd_bench(
        "train-eval",
        "--task",
        "arithmetic[level=easy]",
        "--losses",
        "ce,gce,ntl,ntil,dist2,smmd",
        "--model",
        str(base),
        "--train-examples",
        "256",
        "--epochs",
        "2",
        "--validation-examples",
        "20",
        "--test-examples",
        "30",
        "--out",
        str(out),
        "--set",
        "lora_rank=8",
        "--set",
        "max_length=200",
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "LoRA r=8" in result.stdout
    assert len(list((out / "logs").glob("decode-*.log"))) == 1
    for file in out.glob("cells/*/cell.json"):
        cell = json.loads(file.read_text())
        receipt = json.loads((file.parent / "train.json").read_text())
        assert receipt["kind"] == ("base" if cell["loss"] == "base" else "lora")
        if cell["loss"] != "base":
            assert (file.parent / "checkpoint" / "adapter_model.safetensors").exists()
            assert len(receipt["epochs"]) == 2
            counts = receipt["numeric_targets"]
            acted_on = {"ce": 0, "ntil": counts["covered"]}.get(cell["loss"], counts["numeric"])
            assert counts["covered"] == acted_on
            log = pd.read_parquet(file.parent / "train_log.parquet")
            weight = load_loss(cell["loss"]).weight
            if cell["loss"] == "gce":  # in place of the cross-entropy of its tokens
                weight = log["units"] / log["tokens"]
            relative = weight * log["auxiliary"] / log["cross_entropy"]
            assert log["relative_auxiliary"].tolist() == pytest.approx(
                relative.tolist(), nan_ok=True
            )
    notes = [line for line in result.stderr.splitlines() if line.startswith("Note: ")]
    assert ["drowns" in note for note in notes if "ntl" in note] == [True]  # N = 1000
    (coverage,) = (note for note in notes if "numeric targets" in note)
    assert re.search(r"ntil acts on [\d,]+ of [\d,]+ numeric targets \(\d+\.\d%\)", coverage)
    assert len(notes) == 2
    assert result.stdout.count("drowns it") == 1  # said when it was seen, too
