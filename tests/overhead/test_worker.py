"""The training of one row, in this process: real Trainer, real steps."""

import io

import pytest
import torch

from smmd_bench.overhead import worker
from smmd_bench.overhead.batches import PREPARATION
from smmd_bench.overhead.settings import STOCK
from smmd_bench.overhead.worker import train_row
from smmd_bench.training.trainer import ObjectiveTrainer
from tests.overhead.conftest import tiny_settings

pytestmark = pytest.mark.engine


class Trained:
    """A trained row: its Trainer, its events, its weights before and after, its logits."""

    def __init__(self, monkeypatch, row, grants=99, **changes):
        self.events, self.logits = [], []
        build = worker.build_model

        def watched(*arguments):
            model = build(*arguments)
            self.before = {k: v.clone() for k, v in model.state_dict().items()}
            head = model.get_output_embeddings()
            head.register_forward_hook(
                lambda _, inputs, out: self.logits.append((out.shape, out.requires_grad))
            )
            return model

        monkeypatch.setattr(worker, "build_model", watched)
        stream = io.StringIO("go\n" * grants)  # one for the preparation, one for each step
        self.trainer = train_row(tiny_settings(**changes), row, 0, self.events.append, stream)
        self.after = self.trainer.model.state_dict()
        self.left = len(stream.read().split())

    @property
    def changed(self):
        """Names of the parameters that the training has changed."""
        return {k for k, v in self.before.items() if not torch.equal(v, self.after[k])}


@pytest.mark.parametrize("row", [STOCK, "ce", "smmd"])
def test_every_step_is_an_optimiser_step_of_the_real_trainer(monkeypatch, row):
    out = Trained(monkeypatch, row)
    assert isinstance(out.trainer, ObjectiveTrainer) == (row != STOCK)
    assert out.trainer.state.global_step == PREPARATION + 4
    assert [e["event"] for e in out.events] == ["ready", "prepared", *["step"] * 4, "done"]
    assert [e["step"] for e in out.events if e["event"] == "step"] == [1, 2, 3, 4]
    assert out.events[-1]["peak_bytes"] > 10**6


@pytest.mark.parametrize("row", [STOCK, "ce", "smmd"])
def test_training_changes_the_adapter_alone(monkeypatch, row):
    changed = Trained(monkeypatch, row).changed
    assert len(changed) >= 7  # lora_B of all seven linear maps
    assert all("lora_" in name for name in changed)


def test_full_fine_tuning_changes_the_tied_head(monkeypatch):
    assert "lm_head.weight" in Trained(monkeypatch, "smmd", method="full").changed


def test_the_stock_trainer_builds_the_full_logits_and_ours_does_not(monkeypatch):
    shape = (2, 16, 512)  # batch, length, vocabulary
    assert Trained(monkeypatch, STOCK).logits == [(shape, True)] * (PREPARATION + 4)
    ours = Trained(monkeypatch, "smmd").logits
    assert all(not grad and found[:2] == (1, 4) for found, grad in ours)  # the check of the head


def test_cross_entropy_here_is_that_of_the_stock_trainer(monkeypatch):
    losses = [
        [line["loss"] for line in Trained(monkeypatch, row).trainer.state.log_history[:4]]
        for row in (STOCK, "ce")
    ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_a_step_waits_for_its_grant(monkeypatch):
    assert Trained(monkeypatch, "ce", grants=9).left == 4


def test_without_the_process_that_measures_it_stops(monkeypatch):
    with pytest.raises(EOFError, match="has gone"):
        Trained(monkeypatch, "ce", grants=2)


def test_bfloat16_runs_as_in_training(monkeypatch):
    out = Trained(monkeypatch, "smmd", dtype="bfloat16")
    assert out.before["base_model.model.model.norm.weight"].dtype == torch.bfloat16
    assert out.trainer.args.bf16


def test_batches_carry_their_example_as_in_training_but_for_the_stock_trainer(monkeypatch):
    for row, keys in ((STOCK, set()), ("ce", {"example"})):
        batch = next(iter(Trained(monkeypatch, row).trainer.get_train_dataloader()))
        assert set(batch) == {"input_ids", "attention_mask", "labels"} | keys
