"""Text tasks from the command line: adapters of a Llama, summaries, and the architectures of the
paper's language backbones on GSM8K, in miniature: random weights, real data, every step."""

import itertools
import json
import re
from collections import Counter

import numpy as np
import pandas as pd
import pytest

import smmd_bench as sb
from smmd_bench.decoding.canary_check import LARGEST
from smmd_bench.plugin_system.registry import load_loss

from ..conftest import DATA
from .backbones import BACKBONES, build_backbone
from .conftest import cells, content

pytestmark = [pytest.mark.engine, pytest.mark.slow]
LOSSES = ["ce", "ntl", "smmd"]
"""That go through each architecture; the first test has every one on a single model."""


def test_every_loss_as_an_adapter_of_a_llama_in_one_engine(finish, tiny_checkpoints, tmp_path):
    """At N = 1000."""
    out = tmp_path / "run"
    said = finish(
        "train-eval --task 'arithmetic[level=easy]' --losses ce,gce,ntl,ntil,dist2,smmd "
        "--train-examples 256 --epochs 2 --validation-examples 20 --test-examples 30 "
        "--set lora_rank=8 --set max_length=200 --model",
        tiny_checkpoints("triple").base,
        "--out",
        out,
    )
    assert "LoRA r=8" in said.stdout
    requests = [json.loads(file.read_text()) for file in (out / "logs").glob("decode-*.json")]
    assert sum(len(request["cells"]) for request in requests) == 7
    assert max(len(request["cells"]) for request in requests) >= 3  # adapters in one engine
    for (_, loss), folder in cells(out).items():
        receipt = content(folder, "train.json")
        assert receipt["kind"] == ("base" if loss == "base" else "lora")
        if loss == "base":
            continue
        assert (folder / "checkpoint" / "adapter_model.safetensors").exists()
        assert len(receipt["epochs"]) == 2
        counts = receipt["numeric_targets"]
        acted_on = {"ce": 0, "ntil": counts["covered"]}.get(loss, counts["numeric"])
        assert counts["covered"] == acted_on
        log = pd.read_parquet(folder / "train_log.parquet")
        weight = load_loss(loss).weight
        if loss == "gce":  # in place of the cross-entropy of its tokens
            weight = log["units"] / log["tokens"]
        relative = weight * log["auxiliary"] / log["cross_entropy"]
        np.testing.assert_allclose(log["relative_auxiliary"], relative)
    notes = [line for line in said.stderr.splitlines() if line.startswith("Note: ")]
    assert ["drowns" in note for note in notes if "ntl" in note] == [True]  # N = 1000
    (coverage,) = (note for note in notes if "numeric targets" in note)
    assert re.search(r"ntil acts on [\d,]+ of [\d,]+ numeric targets \(\d+\.\d%\)", coverage)
    assert len(notes) == 2
    assert said.stdout.count("drowns it") == 1  # said when it was seen, too


def test_summaries_are_trained_scored_and_compared(finish, tmp_path):
    """A task without numbers as answers, from training to Table 11."""
    said = finish(
        "train-eval --task samsum[source=corpus] --losses smmd --engine transformers --epochs 1 "
        "--set batch_size=4 --set micro_batch_size=4 --data-dir",
        DATA,
        "--out",
        tmp_path / "run",
    )
    assert "no CE to compare with" in said.stdout
    run = sb.read_run(tmp_path / "run")
    assert set(run.metrics["metric"]) == {"rouge1", "rouge2", "rougeL", "truncation_rate"}
    assert set(run.selection["selection_metric"]) == {"rougeL"}
    compared = run.comparisons.set_index(["loss", "metric"])
    assert compared.loc[("smmd", "rougeL"), "against_loss"] == "base"
    assert compared["p"].notna().all()
    counts = content(cells(run.path)["tiny", "smmd"], "train.json")["numeric_targets"]
    assert counts["tokens"] > counts["numeric"] == counts["covered"] == 15
    caption = (run.path / "reports" / "index.html").read_text()
    assert f"training set that are numeric: 15 of {counts['tokens']}" in caption
    tables = {file.stem for file in (run.path / "reports" / "tables").glob("*.md")}
    assert "samsum_table" in tables
    assert not tables & {"scale_errors", "error_histogram", "digit_distribution"}


FEW = (
    "--train-examples 16 --validation-examples 4 --test-examples 4 --set max_length=1100 "
    "--set batch_size=4 --set learning_rate=1e-3"
)


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    root = tmp_path_factory.mktemp("backbones")
    return {name: build_backbone(name, root / name) for name in BACKBONES}


@pytest.fixture(scope="module")
def gsm8k(finish, checkpoints, tmp_path_factory):
    """The matrix of backbones and losses, each tested on SVAMP, too."""
    out = tmp_path_factory.mktemp("gsm8k") / "run"
    models = [word for folder in checkpoints.values() for word in ("--model", folder)]
    words = f"train-eval --task gsm8k --losses {','.join(LOSSES)} --epochs 2 --no-base {FEW}"
    finish(f"{words} --set micro_batch_size=4 --out", out, *models, SMMD_BENCH_DATA=str(DATA))
    return out


@pytest.mark.parametrize(("name", "n"), [("qwen2", 10), ("smollm3", 1000), ("llama", 1000)])
def test_a_backbone_goes_through_every_step(gsm8k, checkpoints, name, n):
    model = str(checkpoints[name])
    requests = [json.loads(file.read_text()) for file in gsm8k.glob("logs/decode-*.json")]
    mine = [r for r in requests if {c["model"] for c in r["cells"]} == {model}]
    served = [(c["task"], c["loss"]) for r in mine for c in r["cells"]]
    assert sorted(served) == sorted(itertools.product(["gsm8k", "svamp"], LOSSES))
    for request in mine:  # a test of transfer beside its source, several losses in one engine
        tested = Counter(c["loss"] for c in request["cells"])
        assert set(tested.values()) == {2}
    assert any(len(request["cells"]) > 2 for request in mine)
    canaries = {}
    for loss in LOSSES:
        folder = cells(gsm8k)[name, loss]
        selection, receipt = (content(folder, f"{part}.json") for part in ("selection", "train"))
        assert [(line["epoch"], line["n"]) for line in selection["epochs"]] == [(1, 4), (2, 4)]
        assert receipt["kind"] == "lora"
        for epoch in receipt["epochs"]:
            rows = epoch["canary"]["log_probabilities"]
            canaries[loss, epoch["epoch"]] = np.concatenate(rows)
    assert len(canaries) == 2 * len(LOSSES)
    for one, other in itertools.combinations(canaries, 2):  # a canary tells them apart
        deviation = np.abs(canaries[one] - canaries[other]).max()
        assert deviation > LARGEST["float32"], (one, other)

    table = sb.read_run(gsm8k).cells
    table = table[table.model == model]
    assert (table.status == "done").all()
    svamp = table[table.task == "svamp"]
    assert list(svamp.loss) == LOSSES
    assert (svamp.trained_on == "gsm8k").all()
    for address in table.address:
        folder = gsm8k / "cells" / address
        assert len(pd.read_parquet(folder / "completions.parquet")) == 4
        probes = pd.read_parquet(folder / "probes.parquet")
        assert {len(vector) for vector in probes.vector} == {n}


def test_the_manifest_says_how_completions_were_made(gsm8k, checkpoints):
    generation = content(gsm8k, "manifest.json")["generation"]
    assert set(generation) == {"gsm8k", "svamp"}
    assert generation["gsm8k"]["greedy"] is True
    assert generation["gsm8k"]["max_new_tokens"] == 512
    assert {e["name"] for e in generation["gsm8k"]["engine"].values()} == {"vllm"}
    assert generation["svamp"]["dtype"] == {str(f): "float32" for f in checkpoints.values()}


def test_bfloat16_with_gradient_checkpointing(finish, checkpoints, tmp_path):
    words = f"train-eval --task gsm8k --losses smmd --epochs 1 --no-transfers {FEW}"
    options = "--set dtype=bfloat16 --set gradient_checkpointing=true --set micro_batch_size=2"
    model, out = str(checkpoints["llama"]), tmp_path / "run"
    finish(f"{words} {options} --model", model, "--out", out, SMMD_BENCH_DATA=str(DATA))
    run = sb.read_run(out)
    assert list(run.cells.loss) == ["base", "smmd"]
    assert (run.cells.status == "done").all()
    assert run.train_log.loss_value.notna().all()
    assert run.manifest["generation"]["gsm8k"]["dtype"] == {model: "bfloat16"}
