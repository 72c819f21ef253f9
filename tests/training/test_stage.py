"""What the train stage hands to the Trainer, and from which state a killed training goes on."""

import math
from typing import Any

import pytest
import torch

from smmd_bench.experiment.experiment import Experiment
from smmd_bench.models.recipe import Recipe
from smmd_bench.storage.files import write_json
from smmd_bench.training import stage
from smmd_bench.training.epochs import Epochs
from smmd_bench.training.sampler import LengthGroups
from smmd_bench.training.stage import train_cell

pytestmark = pytest.mark.engine


@pytest.fixture
def cell(tmp_path):
    """Two whole epochs, a third whose weights were being written, and a fourth's Trainer state."""
    for epoch in (1, 2):
        write_json(
            tmp_path / "epochs" / str(epoch) / "canary.json", {"epoch": epoch, "step": 10 * epoch}
        )
    write_json(tmp_path / "epochs" / ".3.part" / "canary.json", {"epoch": 3, "step": 30})
    for step in (10, 20, 30, 40):
        (tmp_path / "training" / f"checkpoint-{step}").mkdir(parents=True)
    return tmp_path


def test_it_goes_on_after_the_last_whole_epoch(cell):
    epochs = Epochs(cell, None)
    assert epochs.last_complete() == str(cell / "training" / "checkpoint-20")
    left = {p.name for p in (cell / "training").iterdir()}
    assert left == {"checkpoint-10", "checkpoint-20"}  # states without their weights are removed
    assert [receipt["epoch"] for receipt in epochs.receipts()] == [1, 2]


def test_weights_without_a_state_start_anew(tmp_path):
    write_json(tmp_path / "epochs" / "1" / "canary.json", {"epoch": 1, "step": 10})
    assert Epochs(tmp_path, None).last_complete() is None
    assert not (tmp_path / "epochs").exists()


@pytest.mark.parametrize("spread", [True, False])
def test_a_state_of_another_strategy_is_not_gone_on_with(cell, monkeypatch, spread):
    if spread:
        for state in (cell / "training").iterdir():
            (state / "pytorch_model_fsdp.bin").touch()
    else:
        monkeypatch.setenv("SMMD_BENCH_PROCESSES", "2")
        monkeypatch.setenv("SMMD_BENCH_STRATEGY", "fsdp2")
    assert Epochs(cell, None).last_complete() is None
    assert not (cell / "epochs").exists()


class _StoppedError(Exception):
    """Ends a training before it begins."""


def handed(monkeypatch, folder, **recipe):
    """What the stage gives to the Trainer under these settings."""
    given: dict[str, Any] = {}

    def trainer(**arguments):
        given.update(arguments)
        raise _StoppedError

    monkeypatch.setattr(stage, "ObjectiveTrainer", trainer)
    settings = {"train_examples": 64, "validation_examples": 8, "test_examples": 8, **recipe}
    experiment = Experiment(
        tasks=("arithmetic",), losses=("ce",), seeds=(7,), base=False, recipe=settings
    )
    with pytest.raises(_StoppedError):
        train_cell(experiment.cells[0], folder, lambda *_: None)
    return given


def test_every_option_of_the_recipe_reaches_the_trainer(monkeypatch, tmp_path):
    same = {"learning_rate": 0.004, "weight_decay": 0.2, "max_grad_norm": 0.5}
    same["gradient_checkpointing"] = True
    adapter = {"lora_rank": 4, "lora_alpha": 12, "lora_dropout": 0.125}
    others = {
        "method": "lora", "dtype": "bfloat16", "epochs": 3, "batch_size": 8, "micro_batch_size": 2,
        "warmup_ratio": 0.25, "schedule": "cosine", "group_by_length": True,
        "lora_targets": "q_proj down_proj",
    }  # fmt: skip
    given = handed(monkeypatch, tmp_path, **same, **adapter, **others)
    wanted = {
        "num_train_epochs": 3, "per_device_train_batch_size": 2, "gradient_accumulation_steps": 4,
        "warmup_steps": 0.25, "lr_scheduler_type": "cosine", "bf16": True, "seed": 7, **same,
    }  # fmt: skip
    assert {name: getattr(given["args"], name) for name in wanted} == wanted
    assert given["args"].get_warmup_steps(100) == 25
    assert isinstance(given["sampler"], LengthGroups)
    assert (given["sampler"].batch_size, given["sampler"].seed) == (8, 7)
    adapter = given["model"].peft_config["default"]
    assert (adapter.r, adapter.lora_alpha, adapter.lora_dropout) == (4, 12, 0.125)
    assert adapter.target_modules == {"q_proj", "down_proj"}
    frozen = {p.dtype for p in given["model"].parameters() if not p.requires_grad}
    assert frozen == {torch.bfloat16}


@pytest.mark.parametrize("steps", [1, 2, 7, 240, 100_003])
def test_a_warm_up_is_a_share_of_the_steps_also_all_of_them(steps, tmp_path):
    for ratio in (0.0, 0.03, 0.5, 1.0):
        arguments = stage.training_arguments(Recipe(warmup_ratio=ratio), 0, tmp_path, gpu=False)
        assert arguments.get_warmup_steps(steps) == math.ceil(ratio * steps)
    usual = stage.training_arguments(Recipe(), 0, tmp_path, gpu=False)
    assert usual.warmup_steps == Recipe().warmup_ratio == 0.03  # results of before are the same


def test_full_fine_tuning_in_bfloat16_keeps_float32_weights(monkeypatch, tmp_path):
    given = handed(monkeypatch, tmp_path, method="full", dtype="bfloat16", group_by_length=False)
    assert {p.dtype for p in given["model"].parameters()} == {torch.float32}
    assert given["args"].bf16
    assert given["sampler"] is None
