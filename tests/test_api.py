"""The stable Python API, as docs/python-api.md shows it."""

import pytest
import torch
from transformers import AutoModelForCausalLM

import smmd_bench as sb


def test_every_name_resolves():
    for name in sb.__all__:
        assert getattr(sb, name) is not None
    assert {*sb._API, "__version__"} == {*sb.__all__} <= {*dir(sb)}


def test_a_loss_in_a_training_loop_of_ones_own(tiny_checkpoints):
    tiny = tiny_checkpoints("digit")
    model = AutoModelForCausalLM.from_pretrained(tiny.base)
    batch = tiny.tokenizer(["12+34=46", "7+8=15"], padding=True, return_tensors="pt")
    labels = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)
    loss = sb.load_loss("smmd[sigma=2.0]").bind(sb.numeric_vocabulary(tiny.tokenizer))
    logits = model(**batch).logits
    out = sb.numeric_objective(loss, logits[:, :-1], labels[:, 1:])
    out.total.backward()
    own = float(model(**batch, labels=labels).loss.detach())
    assert float(out.cross_entropy.detach()) == pytest.approx(own, rel=1e-5)
    total = own + 3 * float(out.auxiliary.detach())
    assert float(out.total.detach()) == pytest.approx(total, rel=1e-5)
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)
