"""Text tasks from the command line: adapters of a Llama, summaries, and the architectures of the
paper's language backbones on GSM8K, in miniature: random weights, real data, every step."""

import itertools
import json
from collections import Counter

import numpy as np
import pandas as pd
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import smmd_bench as sb
from smmd_bench.contracts import Example
from smmd_bench.decoding.canary_check import LARGEST
from smmd_bench.encoding.data import RightPaddingCollator, TokenisedExamples
from smmd_bench.models.tokenizers import load_tokenizer
from smmd_bench.plugin_system.registry import load_loss
from smmd_bench.storage.files import read_json

from ..conftest import DATA, TOKENIZERS
from ..tiny_lms import tiny_config
from .conftest import cells, requests

pytestmark = [pytest.mark.engine, pytest.mark.slow]
LOSSES = ["ce", "ntl", "smmd"]
"""That go through each architecture; the first test has every one on a single model."""


def test_every_loss_as_an_adapter_of_a_llama_in_one_engine(
    finish, tiny_checkpoints, tmp_path
):
    """At N = 1000."""
    out = tmp_path / "run"
    output = finish(
        "train-eval --task 'arithmetic[level=easy]' --losses ce,gce,ntl[lambda=3],ntil,dist2,smmd "
        "--train-examples 256 --epochs 2 --validation-examples 20 --test-examples 30 "
        "--set lora_rank=8 --set max_length=200 --model",
        *(tiny_checkpoints("triple").base, "--out", out),
    )
    assert "LoRA r=8" in output.stdout
    served = [len(request) for request in requests(out)]
    assert sum(served) == 7
    assert max(served) >= 3  # adapters in one engine

    for (_, loss), cell in cells(out).items():
        assert cell.receipt["kind"] == ("base" if loss == "base" else "lora")
        if loss == "base":
            continue
        assert (cell.checkpoint / "adapter_model.safetensors").exists()
        assert {*cell.weights} == {1, 2}
        counts = cell.receipt["numeric_targets"]
        acted_on = {"ce": 0, "ntil": counts["covered"]}.get(loss, counts["numeric"])
        assert counts["covered"] == acted_on
        log = pd.read_parquet(cell.place("train_log"))
        weight = load_loss(loss).weight
        if loss == "gce":  # in place of the cross-entropy of its tokens
            weight = log["units"] / log["tokens"]
        relative = weight * log["auxiliary"] / log["cross_entropy"]
        np.testing.assert_allclose(log["relative_auxiliary"], relative)

    # N = 1000
    (drowned,) = (line for line in output.stderr.splitlines() if "drowns" in line)
    assert "ntl" in drowned


def test_summaries_are_trained_scored_and_compared(finish, tmp_path):
    """A task without numbers as answers, from training to Table 11."""
    output = finish(
        "train-eval --task samsum[source=corpus] --losses smmd --engine transformers --epochs 1 "
        "--set batch_size=4 --set micro_batch_size=4 --out",
        *(tmp_path / "run", "--data-dir", DATA),
    )
    assert "no CE to compare with" in output.stdout

    run = sb.read_run(tmp_path / "run")
    assert set(run.metrics["metric"]) == {
        "rouge1",
        "rouge2",
        "rougeL",
        "truncation_rate",
    }
    assert set(run.selection["selection_metric"]) == {"rougeL"}

    compared = run.comparisons.set_index(["loss", "metric"])
    assert compared.loc[("smmd", "rougeL"), "against_loss"] == "base"
    assert compared["p"].notna().all()
    counts = cells(run.path)["tiny", "smmd"].receipt["numeric_targets"]
    assert counts["tokens"] > counts["numeric"] == counts["covered"] == 15
    tables = {file.stem for file in (run.path / "reports/tables").glob("*.md")}
    assert "samsum_table" in tables
    assert not tables & {"scale_errors", "digit_distribution"}


FEW = (
    "--train-examples 16 --validation-examples 4 --test-examples 4 --set max_length=1100 "
    "--set batch_size=4 --set learning_rate=1e-3"
)


PADDING = 27
"""Rows of Qwen2's embedding beyond its tokenizer, as the real one has."""
BACKBONES = {  # by model_type of transformers: the tokenizer of tests/data, and the configuration
    # both sizes of Qwen2.5 are this architecture: tied embeddings, a token a digit
    "qwen2": ("digit", {"tie_word_embeddings": True}),
    # tied too; every fourth layer has no rotary embedding
    "smollm3": ("triple", {"num_hidden_layers": 4, "tie_word_embeddings": True}),
    "llama": ("triple", {"tie_word_embeddings": False}),
}


def build_backbone(architecture, folder):
    """Save a checkpoint that answers 7 to every word problem, so that its decoding soon ends."""
    torch.manual_seed(0)
    kind, shape = BACKBONES[architecture]
    tokenizer = AutoTokenizer.from_pretrained(TOKENIZERS / kind)
    config = tiny_config(architecture, tokenizer, max_position_embeddings=2048, **shape)
    config.vocab_size += PADDING if architecture == "qwen2" else 0
    config.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    # transformers may read it in another class there
    tokenizer = load_tokenizer(folder)
    model = AutoModelForCausalLM.from_config(config)
    lines = (DATA / "gsm8k/train.jsonl").read_text(encoding="utf-8").splitlines()
    questions = [f"Question: {json.loads(line)['question']}\nAnswer:" for line in lines]
    examples = [Example(question, question, " 7", None) for question in questions]
    data = TokenisedExamples(examples, tokenizer, 2048)
    collate = RightPaddingCollator(tokenizer.pad_token_id)
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    model.train()

    for step in range(60):
        batch = collate([data[at % len(data)] for at in range(4 * step, 4 * step + 4)])
        batch.pop("example")
        model(**batch).loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    model.save_pretrained(folder)
    return folder


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
    finish(
        f"{words} --set micro_batch_size=4 --out",
        out,
        *models,
        SMMD_BENCH_DATA=str(DATA),
    )
    return out


@pytest.mark.parametrize("name", BACKBONES)
def test_a_test_of_transfer_stands_beside_its_source_in_an_engine(
    gsm8k, checkpoints, name
):
    model = str(checkpoints[name])
    sizes, served = [], []
    for request in requests(gsm8k):
        if request[0]["model"] == model:
            sizes.append(len(request))
            served += [(cell["task"], cell["loss"]) for cell in request]
            by_loss = Counter(cell["loss"] for cell in request)
            assert set(by_loss.values()) == {2}

    expected = itertools.product(["gsm8k", "svamp"], LOSSES)
    assert sorted(served) == sorted(expected)
    assert max(sizes) > 2  # several losses in one engine


@pytest.mark.parametrize("name", BACKBONES)
def test_a_canary_tells_apart_every_loss_and_epoch(gsm8k, name):
    canaries = {}
    for loss in LOSSES:
        cell = cells(gsm8k)[name, loss]
        assert [line["n"] for line in cell.selection["epochs"]] == [4, 4]
        assert cell.receipt["kind"] == "lora"
        epochs = read_json(cell.trained / "canaries.json")["epochs"]
        for epoch, canary in epochs.items():
            canaries[loss, epoch] = np.concatenate(canary["log_probabilities"])

    assert len(canaries) == 2 * len(LOSSES)
    for pair in itertools.combinations(canaries, 2):
        first, second = (canaries[key] for key in pair)
        assert np.abs(first - second).max() > LARGEST["float32"], pair


@pytest.mark.parametrize(
    ("name", "n"), [("qwen2", 10), ("smollm3", 1000), ("llama", 1000)]
)
def test_the_cells_of_a_backbone_have_completions_and_probes(
    gsm8k, checkpoints, name, n
):
    model = str(checkpoints[name])
    run = sb.read_run(gsm8k)
    table = run.cells[run.cells.model == model]
    assert set(table.status) == {"done"}
    assert set(table[table.task == "svamp"].trained_on) == {"gsm8k"}

    for address in table.address:
        cell = run.current(address)
        assert len(pd.read_parquet(cell.place("completions"))) == 4
        vectors = pd.read_parquet(cell.place("probes")).vector
        assert {*map(len, vectors)} == {n}

    generation = run.manifest["generation"]["gsm8k"]
    assert generation["max_new_tokens"] == 512
    assert generation["dtype"][model] == "float32"
    assert generation["engine"][model]["name"] == "vllm"


def test_bfloat16_with_gradient_checkpointing(finish, checkpoints, tmp_path):
    words = f"train-eval --task gsm8k --losses smmd --epochs 1 --no-transfers {FEW}"
    options = "--set dtype=bfloat16 --set gradient_checkpointing=true --set micro_batch_size=2"
    model, out = str(checkpoints["llama"]), tmp_path / "run"
    finish(f"{words} {options} --model", model, "--out", out, SMMD_BENCH_DATA=str(DATA))
    run = sb.read_run(out)
    assert list(run.cells.status) == ["done", "done"]
    assert run.train_log.loss_value.notna().all()
    assert run.manifest["generation"]["gsm8k"]["dtype"] == {model: "bfloat16"}
