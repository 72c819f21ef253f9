"""Any loss as `compute_loss_func` of a stock Trainer, held to one large batch."""

import random
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, DataCollatorForSeq2Seq, Trainer, TrainingArguments

import smmd_bench as sb
from smmd_bench.errors import UserError

pytestmark = pytest.mark.engine


def sums(tokenizer, count):
    """Sums of one to four digits, of which the result is supervised: rows of unequal length; where
    a seventh row has words alone, micro-batches have unequal shares of digits."""
    rng = random.Random(0)
    rows = []
    for at in range(count):
        a, b = rng.randrange(10 ** rng.randrange(1, 5)), rng.randrange(10)
        texts = f"{a}+{b}=", str(a + b) if at % 7 else "+=" * (1 + b)
        prompt, target = (tokenizer(x, add_special_tokens=False)["input_ids"] for x in texts)
        target.append(tokenizer.eos_token_id)
        labels = [-100] * len(prompt) + target
        ids = prompt + target
        rows.append({"input_ids": ids, "attention_mask": [1] * len(ids), "labels": labels})
    return rows


def trainer(tiny, folder, loss, accumulation=1, watched=True):
    """A stock Trainer, of a loss or of its own; steps of 8 examples, which rows of digits make
    uneven."""
    settings = {
        "per_device_train_batch_size": 8 // accumulation, "per_device_eval_batch_size": 8,
        "gradient_accumulation_steps": accumulation, "max_steps": 5, "learning_rate": 1e-2,
        "optim": "sgd", "logging_steps": 1, "report_to": [], "disable_tqdm": True,
        "save_strategy": "no", "use_cpu": True, "dataloader_pin_memory": False,
    }  # fmt: skip
    arguments: dict[str, Any] = {
        "model": AutoModelForCausalLM.from_pretrained(tiny.base),
        "args": TrainingArguments(output_dir=str(folder), **settings),
        "train_dataset": sums(tiny.tokenizer, 40),
        "eval_dataset": sums(tiny.tokenizer, 8),
        "data_collator": DataCollatorForSeq2Seq(tiny.tokenizer),
    }
    if loss is not None:
        arguments["compute_loss_func"] = sb.compute_loss_func(loss, tiny.tokenizer)
    found = Trainer(processing_class=tiny.tokenizer, **arguments)
    if loss is not None and watched:
        found.compute_loss_func.watch(found)
    return found


def losses(trainer):
    """Of every step, then of the evaluation."""
    trainer.train()
    logged = [line["loss"] for line in trainer.state.log_history if "loss" in line]
    assert len(logged) == 5
    return [*logged, trainer.evaluate()["eval_loss"]]


@pytest.mark.parametrize("accumulation", [1, 4])
def test_ce_is_that_of_the_stock_trainer(tiny, tmp_path, accumulation):
    stock = losses(trainer(tiny, tmp_path, None, accumulation))
    for watched in (True, False):
        own = losses(trainer(tiny, tmp_path, "ce", accumulation, watched))
        assert own == pytest.approx(stock, rel=1e-4)


@pytest.mark.parametrize("loss", ["smmd", "ntl", "gce", "ntil[noise=0]"])
def test_gradient_accumulation_changes_nothing(tiny, tmp_path, loss):
    whole, split = (trainer(tiny, tmp_path, loss, accumulation) for accumulation in (1, 4))
    of_whole = losses(whole)
    assert losses(split) == pytest.approx(of_whole, rel=1e-4)
    start = AutoModelForCausalLM.from_pretrained(tiny.base)
    models = (m.parameters() for m in (whole.model, split.model, start))
    moved = 0.0
    for a, b, before in zip(*models, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)
        moved += float((a - before).detach().abs().sum())
    assert moved > 0
    if loss == "gce":  # it divides by tokens, which the Trainer counts
        assert losses(trainer(tiny, tmp_path, loss, 4, False)) == pytest.approx(of_whole, rel=1e-4)
    else:
        assert losses(trainer(tiny, tmp_path, loss, 1, False)) == pytest.approx(of_whole, rel=1e-4)
        with pytest.raises(UserError, match=r"numeric units .*watch\(trainer\)"):
            trainer(tiny, tmp_path, loss, 4, False).train()
