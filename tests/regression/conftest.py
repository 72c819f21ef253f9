"""A run folder whose cells have real (tiny, random) adapters, and questions of our own."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging

from smmd_bench.storage.files import read_json, write_json
from tests.conftest import LINEAR, TOKENIZERS
from tests.runs import write_run as synthetic_run
from tests.tiny_lms import tiny_config

from .questions import write_mmlu

LOSSES = ("ce", "smmd")
SHORT = 310
"""Too few tokens for the longer ones of our own questions."""


@dataclass(frozen=True)
class Checkpoints:
    """A base with room for 16,384 tokens, and one of SHORT; two adapters on the first by loss."""

    base: Path
    short: Path
    adapters: dict[str, Path]


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory):
    logging.disable_progress_bar()
    root = tmp_path_factory.mktemp("checkpoints")
    tokenizer = AutoTokenizer.from_pretrained(TOKENIZERS / "digit")
    adapters = {}
    for name, positions in (("base", 16384), ("short", SHORT)):
        torch.manual_seed(0)
        shape = {
            "num_hidden_layers": 1,
            "intermediate_size": 64,
            "initializer_range": 0.5,
        }
        shape |= {"max_position_embeddings": positions, "tie_word_embeddings": True}
        model = AutoModelForCausalLM.from_config(
            tiny_config("qwen2", tokenizer, **shape)
        )
        model.save_pretrained(root / name)
        tokenizer.save_pretrained(root / name)

    for seed, loss in enumerate(LOSSES, start=1):
        torch.manual_seed(seed)
        lora = get_peft_model(
            AutoModelForCausalLM.from_pretrained(root / "base"),
            LoraConfig(r=4, target_modules=LINEAR, task_type="CAUSAL_LM"),
        )
        for parameter in (p for p in lora.parameters() if p.requires_grad):
            torch.nn.init.normal_(parameter, std=0.3)
        lora.save_pretrained(root / loss)
        adapters[loss] = root / loss
    return Checkpoints(root / "base", root / "short", adapters)


@pytest.fixture(scope="session")
def mmlu(tmp_path_factory):
    """A data folder with questions of our own in the hub's layout: 2 a subject, 5 shots."""
    folder = tmp_path_factory.mktemp("data")
    write_mmlu(folder / "mmlu/cais/mmlu")
    return folder


@pytest.fixture
def make_run(checkpoints, tmp_path):
    """`make_run()`: the folder of a run of base, ce and smmd that was trained, selected, scored."""

    def make(base=None, losses=("ce", "smmd")):
        folder = tmp_path / "run"
        write_run(
            folder,
            base or checkpoints.base,
            {k: checkpoints.adapters[k] for k in losses},
        )
        return folder

    return make


def write_run(folder: Path, base: Path, adapters: dict[str, Path]) -> None:
    """A synthetic run of base, ce and smmd whose cells have weights, too."""
    run = synthetic_run(
        folder,
        models=[str(base)],
        tasks=["gsm8k"],
        losses=list(adapters),
        seeds=[0],
        n=20,
    )
    for address, loss in zip(run.cells["address"], run.cells["loss"], strict=True):
        cell = run.current(str(address))
        receipt = read_json(cell.trained / "receipt.json") or {}
        kind = "base" if loss == "base" else "lora"
        write_json(cell.trained / "receipt.json", {**receipt, "kind": kind})
        if loss != "base":
            shutil.copytree(adapters[loss], cell.epoch(cell.tested.epoch))
