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

    def __init__(self, row, grants=99, **changes):
        self.events, self.logits = [], []
        build = worker.build_model

        def watched(*arguments):
            model = build(*arguments)
            self.before = {k: v.clone() for k, v in model.state_dict().items()}
            head = model.get_output_embeddings()
            head.register_forward_hook(
                lambda _, inputs, out: self.logits.extend(
                    (tensor.shape, tensor.requires_grad)
                    for tensor in [out]
                    if isinstance(tensor, torch.Tensor)  # ours gives the objective
                )
            )
            return model

        stream = io.StringIO("go\n" * grants)  # one for the preparation, one for each step
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(worker, "build_model", watched)
            self.trainer = train_row(tiny_settings(**changes), row, 0, self.events.append, stream)
        self.after = self.trainer.model.state_dict()
        self.left = len(stream.read().split())

    @property
    def changed(self):
        """Names of the parameters that the training has changed."""
        return {k for k, v in self.before.items() if not torch.equal(v, self.after[k])}


@pytest.fixture(scope="module", params=[STOCK, "ce", "smmd"])
def out(request):
    """A row as it is trained by default."""
    return Trained(request.param)


def test_every_step_is_an_optimiser_step_of_the_real_trainer(out):
    stock = not isinstance(out.trainer, ObjectiveTrainer)
    assert out.trainer.state.global_step == PREPARATION + 4
    assert [e["event"] for e in out.events] == ["ready", "prepared", *["step"] * 4, "done"]
    assert [e["step"] for e in out.events if e["event"] == "step"] == [1, 2, 3, 4]
    assert out.events[-1]["peak_bytes"] > 10**6
    batch = next(iter(out.trainer.get_train_dataloader()))
    keys = {"input_ids", "attention_mask", "labels"}
    assert set(batch) == (keys if stock else {*keys, "example"})


def test_training_changes_the_adapter_alone(out):
    assert len(out.changed) >= 7  # lora_B of all seven linear maps
    assert all("lora_" in name for name in out.changed)


def test_the_stock_trainer_builds_the_full_logits_and_ours_does_not(out):
    if isinstance(out.trainer, ObjectiveTrainer):  # the check of the head
        assert all(not grad and found[:2] == (1, 4) for found, grad in out.logits)
    else:
        shape = (2, 16, 512)  # batch, length, vocabulary
        assert out.logits == [(shape, True)] * (PREPARATION + 4)


def test_full_fine_tuning_changes_the_tied_head():
    assert "lm_head.weight" in Trained("smmd", method="full").changed


def test_cross_entropy_here_is_that_of_the_stock_trainer():
    losses = [
        [line["loss"] for line in Trained(row).trainer.state.log_history[:4]]
        for row in (STOCK, "ce")
    ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_a_step_waits_for_its_grant():
    assert Trained("ce", grants=9).left == 4


def test_without_the_process_that_measures_it_stops():
    with pytest.raises(EOFError, match="has gone"):
        Trained("ce", grants=2)


def test_bfloat16_runs_as_in_training():
    out = Trained("smmd", dtype="bfloat16")
    assert out.before["base_model.model.model.norm.weight"].dtype == torch.bfloat16
    assert out.trainer.args.bf16
