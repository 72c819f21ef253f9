"""Another architecture from a local folder, with LoRA, at N = 1000."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .conftest import CommandLine

pytestmark = pytest.mark.slow


def test_three_losses_as_adapters_of_a_llama_in_one_engine(
    smmd_bench: CommandLine, tiny_checkpoints: Callable[[str], Any], tmp_path: Path
) -> None:
    base = tiny_checkpoints("triple").base
    out = tmp_path / "run"
    result = smmd_bench(
        "train-eval",
        "--task",
        "arithmetic[level=easy]",
        "--losses",
        "ce,ntl,smmd",
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
