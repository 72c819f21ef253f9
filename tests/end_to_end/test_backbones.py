"""The architectures of the paper's language backbones on GSM8K, in miniature: random weights,
real data, every step of the way."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import smmd_bench as sb
from smmd_bench.decoding.canary_check import LARGEST

from ..conftest import DATA
from .backbones import BACKBONES, build_backbone
from .conftest import CommandLine

pytestmark = [pytest.mark.engine, pytest.mark.slow]
LOSSES = ["ce", "gce", "ntl", "ntil", "smmd"]
FEW = "--train-examples 16 --validation-examples 4 --test-examples 4"
TUNED = "--set max_length=1100 --set batch_size=4 --set micro_batch_size=4 --set learning_rate=1e-3"


@pytest.fixture(scope="module")
def gsm8k(smmd_bench: CommandLine) -> CommandLine:
    return CommandLine({**smmd_bench.environment, "SMMD_BENCH_DATA": str(DATA)})


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("backbones")
    return {name: build_backbone(name, root / name) for name in BACKBONES}


@pytest.fixture(scope="module")
def finished(
    gsm8k: CommandLine, checkpoints: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    out = tmp_path_factory.mktemp("gsm8k") / "run"
    models = [word for folder in checkpoints.values() for word in ("--model", str(folder))]
    words = (
        f"train-eval --task gsm8k --losses {','.join(LOSSES)} --epochs 2 --no-base {FEW} {TUNED}"
    )
    result = gsm8k(*words.split(), *models, "--out", str(out))
    assert result.returncode == 0, result.stdout + result.stderr
    return out


def receipts(run: Path, model: Path, name: str) -> dict[str, Any]:
    """A JSON file of the cells that a model trained, by loss."""
    found = {}
    for file in run.glob("cells/*/cell.json"):
        cell = json.loads(file.read_text())
        if cell["model"] == str(model) and cell["task"] == "gsm8k":
            found[cell["loss"]] = json.loads((file.parent / name).read_text())
    return found


@pytest.mark.parametrize("name", BACKBONES)
def test_all_epochs_of_all_losses_are_decoded_in_one_engine(
    finished: Path, checkpoints: dict[str, Path], name: str
) -> None:
    requests = [json.loads(f.read_text()) for f in finished.glob("logs/decode-*.json")]
    mine = [r for r in requests if {c["model"] for c in r["cells"]} == {str(checkpoints[name])}]
    assert [sorted((c["task"], c["loss"]) for c in r["cells"]) for r in mine] == [
        sorted(itertools.product(["gsm8k", "svamp"], LOSSES))
    ]
    for receipt in receipts(finished, checkpoints[name], "selection.json").values():
        assert [line["epoch"] for line in receipt["epochs"]] == [1, 2]
        assert [line["n"] for line in receipt["epochs"]] == [4, 4]


@pytest.mark.parametrize("name", BACKBONES)
def test_a_canary_tells_each_adapter_from_the_others(
    finished: Path, checkpoints: dict[str, Path], name: str
) -> None:
    found = receipts(finished, checkpoints[name], "train.json")
    assert {receipt["kind"] for receipt in found.values()} == {"lora"}
    canaries = {
        (loss, epoch["epoch"]): np.concatenate(epoch["canary"]["log_probabilities"])
        for loss, receipt in found.items()
        for epoch in receipt["epochs"]
    }
    assert len(canaries) == 2 * len(LOSSES)
    for one, other in itertools.combinations(canaries, 2):
        if {one[0], other[0]} != {"ce", "ntil"}:  # which hardly differ where NTIL sees few numbers
            deviation = np.abs(canaries[one] - canaries[other]).max()
            assert deviation > LARGEST["float32"], (one, other)


@pytest.mark.parametrize("name", BACKBONES)
def test_svamp_tests_what_gsm8k_trained(
    finished: Path, checkpoints: dict[str, Path], name: str
) -> None:
    run = sb.read_run(finished)
    cells = run.cells[run.cells.model == str(checkpoints[name])]
    assert (cells.status == "done").all()
    svamp = cells[cells.task == "svamp"]
    assert list(svamp.loss) == LOSSES
    assert (svamp.trained_on == "gsm8k").all()
    for address in svamp.address:
        assert len(pd.read_parquet(finished / "cells" / address / "completions.parquet")) == 4


@pytest.mark.parametrize(("name", "n"), [("qwen2", 10), ("smollm3", 1000), ("llama", 1000)])
def test_the_probes_see_the_numeric_vocabulary_of_the_tokenizer(
    finished: Path, checkpoints: dict[str, Path], name: str, n: int
) -> None:
    cells = sb.read_run(finished).cells
    for address in cells[cells.model == str(checkpoints[name])].address:
        probes = pd.read_parquet(finished / "cells" / address / "probes.parquet")
        assert {len(vector) for vector in probes.vector} == {n}


def test_the_manifest_says_how_completions_were_made(
    finished: Path, checkpoints: dict[str, Path]
) -> None:
    generation = json.loads((finished / "manifest.json").read_text())["generation"]
    assert set(generation) == {"gsm8k", "svamp"}
    assert generation["gsm8k"]["greedy"] is True
    assert generation["gsm8k"]["max_new_tokens"] == 512
    assert {e["name"] for e in generation["gsm8k"]["engine"].values()} == {"vllm"}
    assert generation["svamp"]["dtype"] == {str(f): "float32" for f in checkpoints.values()}


def test_bfloat16_with_gradient_checkpointing(
    gsm8k: CommandLine, checkpoints: dict[str, Path], tmp_path: Path
) -> None:
    words = f"train-eval --task gsm8k --losses smmd --epochs 1 --no-transfers {FEW} {TUNED}"
    more = "--set dtype=bfloat16 --set gradient_checkpointing=true --set micro_batch_size=2"
    model = ["--model", str(checkpoints["smollm3"])]
    result = gsm8k(*words.split(), *more.split(), *model, "--out", str(tmp_path / "run"))
    assert result.returncode == 0, result.stdout + result.stderr
    run = sb.read_run(tmp_path / "run")
    assert list(run.cells.loss) == ["base", "smmd"]
    assert (run.cells.status == "done").all()
    assert run.train_log.loss_value.notna().all()
    assert run.manifest["generation"]["gsm8k"]["dtype"] == {model[1]: "bfloat16"}
