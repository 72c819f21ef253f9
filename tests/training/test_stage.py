"""What the train stage hands to the Trainer, and from which state a killed training goes on."""

import os
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pytest
import torch

from smmd_bench.errors import UserError
from smmd_bench.experiment.experiment import Experiment
from smmd_bench.storage.files import read_json, write_json
from smmd_bench.training import stage, tracking
from smmd_bench.training.epochs import Epochs
from smmd_bench.training.sampler import LengthGroups
from smmd_bench.training.stage import train_cell
from smmd_bench.training.trainer import ObjectiveTrainer
from tests.conftest import expect_user_error, silent

pytestmark = pytest.mark.engine


@pytest.fixture
def cell(tmp_path):
    """Two whole epochs, a third whose weights were being written, and a fourth's Trainer state."""
    for epoch in (1, 2):
        write_json(
            tmp_path / "epochs" / str(epoch) / "canary.json",
            {"epoch": epoch, "step": 10 * epoch},
        )

    write_json(tmp_path / "epochs/.3.part/canary.json", {"epoch": 3, "step": 30})
    for step in (10, 20, 30, 40):
        add_state(tmp_path, step, step // 10)
    return tmp_path


def add_state(cell, step, epochs):
    """A Trainer's state, whose list of files says that so many epochs are behind it."""
    folder = cell / "training" / f"checkpoint-{step}"
    folder.mkdir(parents=True)
    write_json(folder / "whole.json", {"epochs": epochs})
    return folder


def test_it_goes_on_after_the_last_whole_epoch(cell):
    epochs = Epochs(cell, None, None, None)
    assert epochs.last_complete() == str(cell / "training/checkpoint-20")

    states = {p.name for p in (cell / "training").iterdir()}
    # states without their weights are removed
    assert states == {"checkpoint-10", "checkpoint-20"}
    assert [receipt["epoch"] for receipt in epochs.receipts()] == [1, 2]


@pytest.mark.parametrize("spread", [True, False])
def test_a_state_of_another_strategy_is_not_gone_on_with(cell, monkeypatch, spread):
    if spread:
        for state in (cell / "training").iterdir():
            (state / "pytorch_model_fsdp.bin").touch()
    else:
        monkeypatch.setenv("SMMD_BENCH_PROCESSES", "2")
        monkeypatch.setenv("SMMD_BENCH_STRATEGY", "fsdp2")
    assert Epochs(cell, None, None, None).last_complete() is None
    assert not (cell / "epochs").exists()


@pytest.mark.parametrize(
    ("step", "epochs", "kept"), [(25, 2, 25), (25, 1, 20), (5, 0, 20)]
)
def test_it_goes_on_inside_of_an_epoch_where_all_before_it_is_whole(
    cell, step, epochs, kept
):
    add_state(cell, step, epochs)
    assert Epochs(cell, None, None, None).last_complete() == str(
        cell / "training" / f"checkpoint-{kept}"
    )


SMALL = {
    "train_examples": 40, "batch_size": 8, "micro_batch_size": 4, "epochs": 2,
    "validation_examples": 8, "test_examples": 8,
}  # fmt: skip


def sole_cell(loss, recipe, **options):
    """The only cell of an experiment on arithmetic."""
    tasks, losses = ("arithmetic",), (loss,)
    (cell,) = Experiment(tasks, losses, base=False, recipe=recipe, **options).cells
    return cell


def log_of(stored):
    """The log of a training, but for how long its steps took."""
    return pd.read_parquet(stored.place("train_log")).drop(columns="seconds")


FULL = {"method": "full", "group_by_length": True}
LORA = {"method": "lora", "lora_dropout": 0.1, "group_by_length": False}


@pytest.mark.long
@pytest.mark.parametrize("model", ["builtin/tiny", "builtin/tiny-vl"])
@pytest.mark.parametrize("recipe", [LORA, FULL])
def test_a_training_that_is_killed_ends_as_if_it_were_not(model, recipe, tmp_path):
    def trained(folder, stop=None, **more):
        steps = []

        def progress(what, done, total):
            if what.startswith("train ") and total == 10:
                steps.append(done)
                if done == stop:
                    raise _StoppedError

        cell = sole_cell("smmd", {**SMALL, **recipe, **more}, models=(model,))
        with suppress(_StoppedError):
            train_cell(cell, folder, progress)
        stored = cell.stored(folder)
        if stored.receipt is None:
            return None, steps, None
        canaries = read_json(stored.trained / "canaries.json")
        weights = stored.receipt["epochs"], canaries
        return weights, steps, log_of(stored)

    expected, _, log = trained(tmp_path / "plain")
    _, steps, _ = trained(tmp_path / "killed", 4, save_minutes=0)

    assert steps == [0, 1, 2, 3, 4]

    _, steps, _ = trained(tmp_path / "killed", 6)
    assert steps == [0, 4, 5, 6]  # from inside of the first epoch

    weights, steps, resumed_log = trained(tmp_path / "killed")
    assert steps == [0, 6, 7, 8, 9, 10]  # from the end of the first
    assert weights == expected
    pd.testing.assert_frame_equal(log, resumed_log)


@pytest.mark.long
def test_where_memory_ends_steps_go_on_in_halves(monkeypatch, tmp_path):
    """The longest micro-batch comes first and leaves nothing; a later failure repeats its step."""
    compute_loss = ObjectiveTrainer.compute_loss
    sizes = []
    settings = {**SMALL, **LORA, "epochs": 1}

    def trained(name, most, start=0, rehearse=False, **more):
        def limited(trainer, model, inputs, **options):
            sizes.append(len(inputs["example"]))
            if sizes[-1] > most and len(sizes) > start:
                raise torch.OutOfMemoryError
            return compute_loss(trainer, model, inputs, **options)

        def make(**arguments):
            return ObjectiveTrainer(**{**arguments, "rehearse": rehearse})

        monkeypatch.setattr(ObjectiveTrainer, "compute_loss", limited)
        monkeypatch.setattr(stage, "ObjectiveTrainer", make)
        sizes.clear()
        cell = sole_cell("ntil", {**settings, **more})
        train_cell(cell, tmp_path / name, silent)
        stored = cell.stored(tmp_path / name)
        return stored.receipt, log_of(stored)

    plain, log = trained("plain", 8, micro_batch_size=2)
    halved, _ = trained("halved", 2, rehearse=True, micro_batch_size=8)

    assert sizes[:7] == [8, 4, 2, 2, 2, 2, 2]
    assert halved["epochs"] == plain["epochs"]  # the digests of the weights
    assert "Out of memory" in halved["notes"][-1]
    assert "micro_batch_size=2" in halved["notes"][-1]

    _, later_log = trained("later", 2, start=3)
    # the second step failed in its second half
    assert sizes[:8] == [4, 4, 4, 4, 2, 2, 2, 2]
    pd.testing.assert_frame_equal(later_log, log, rtol=2e-2)  # other draws of dropout
    with expect_user_error(r"micro_batch_size=1: .* gradient_checkpointing=true"):
        trained("never", 0)

    # Halves would round otherwise: beside others a training ends, to run again alone.
    monkeypatch.setenv("SMMD_BENCH_SHARES_GPU", "1")
    with pytest.raises(UserError) as error:
        trained("beside", 2, rehearse=True, micro_batch_size=8)
    assert sizes == [8]
    assert isinstance(error.value.__cause__, torch.OutOfMemoryError)


def test_a_single_step_is_no_warm_up(tmp_path):
    cell = sole_cell("ce", {**SMALL, **LORA, "epochs": 1, "train_examples": 4})
    train_cell(cell, tmp_path, silent)
    (rate,) = log_of(cell.stored(tmp_path))["learning_rate"]
    assert rate == cell.recipe.learning_rate


class _StoppedError(Exception):
    """Ends a training before it begins."""


def handed(monkeypatch, folder, **recipe):
    """What the stage gives to the Trainer under these settings."""
    arguments_of_trainer = {}

    def trainer(**arguments):
        arguments_of_trainer.update(arguments)
        raise _StoppedError

    monkeypatch.setattr(stage, "ObjectiveTrainer", trainer)
    settings = {
        "train_examples": 64,
        "validation_examples": 8,
        "test_examples": 8,
        **recipe,
    }
    cell = sole_cell("ce", settings, seeds=(7,))
    with pytest.raises(_StoppedError):
        train_cell(cell, folder, silent)
    return arguments_of_trainer


def test_every_option_of_the_recipe_reaches_the_trainer(monkeypatch, tmp_path):
    unchanged = {"learning_rate": 0.004, "weight_decay": 0.2, "max_grad_norm": 0.5}
    unchanged["gradient_checkpointing"] = True
    adapter = {"lora_rank": 4, "lora_alpha": 12, "lora_dropout": 0.125}
    renamed = {
        "method": "lora", "dtype": "bfloat16", "epochs": 3, "batch_size": 8, "micro_batch_size": 2,
        "warmup_ratio": 0.25, "schedule": "cosine", "group_by_length": True,
        "lora_targets": "q_proj down_proj",
    }  # fmt: skip
    handed_over = handed(monkeypatch, tmp_path, **unchanged, **adapter, **renamed)
    wanted = {
        "num_train_epochs": 3, "per_device_train_batch_size": 2, "gradient_accumulation_steps": 4,
        "warmup_steps": 0.25, "lr_scheduler_type": "cosine", "bf16": True, "seed": 7, **unchanged,
    }  # fmt: skip

    assert {name: getattr(handed_over["args"], name) for name in wanted} == wanted
    assert handed_over["args"].get_warmup_steps(100) == 25
    assert isinstance(handed_over["sampler"], LengthGroups)
    assert handed_over["sampler"].batch_size == 8
    assert handed_over["sampler"].seed == 7

    adapter = handed_over["model"].peft_config["default"]
    assert adapter.r == 4
    assert adapter.lora_alpha == 12
    assert adapter.lora_dropout == 0.125
    assert adapter.target_modules == {"q_proj", "down_proj"}

    frozen = {p.dtype for p in handed_over["model"].parameters() if not p.requires_grad}
    assert frozen == {torch.bfloat16}


def test_each_cell_has_a_name_and_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "environ", {"WANDB_DIR": "mine"})
    folders = set()
    for cell in ("0a", "0b"):
        settings = tracking.tracking(
            "tensorboard", "m smmd[sigma=1] seed 0", tmp_path / "run/train" / cell
        )
        assert settings["report_to"] == ["tensorboard"]
        assert settings["run_name"] == "m smmd[sigma=1] seed 0"
        folders.add(os.environ["TENSORBOARD_LOGGING_DIR"])

    assert len(folders) == 2
    assert all(Path(f).parent == tmp_path / "run/tracking/tensorboard" for f in folders)
    assert os.environ["WANDB_DIR"] == "mine"
    assert os.environ["WANDB_PROJECT"] == "run"
