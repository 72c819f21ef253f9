"""Any loss in other people's trainers, held to one large batch."""

import random

import pytest
import torch
from datasets import Dataset
from transformers import (
    AutoModelForCausalLM,
    DataCollatorForSeq2Seq,
    Trainer,
    TrainingArguments,
)

import smmd_bench as sb
from smmd_bench.models.cards import model_card
from smmd_bench.models.tokenizers import load_tokenizer
from tests.conftest import expect_user_error
from tests.docs.documents import ROOT, blocks

from .trained import moved

pytestmark = pytest.mark.engine


def sums(tokenizer, count):
    """Sums of one to four digits, of which the result is supervised: rows of unequal length; where
    a seventh row has words alone, micro-batches have unequal shares of digits."""
    rng = random.Random(0)
    rows = []
    for at in range(count):
        digits = rng.randrange(1, 5)
        a = rng.randrange(10**digits)
        b = rng.randrange(10)
        result = str(a + b) if at % 7 else "+=" * (1 + b)
        prompt = tokenizer.encode(f"{a}+{b}=", add_special_tokens=False)
        target = tokenizer.encode(result, add_special_tokens=False)
        target.append(tokenizer.eos_token_id)
        ids = prompt + target
        mask = [1] * len(ids)
        labels = [-100] * len(prompt) + target
        rows.append({"input_ids": ids, "attention_mask": mask, "labels": labels})
    return rows


def settings_of(folder, accumulation, **more):
    """Of a Trainer on the CPU with steps of 8 examples."""
    return {
        "output_dir": str(folder), "per_device_train_batch_size": 8 // accumulation,
        "per_device_eval_batch_size": 8, "gradient_accumulation_steps": accumulation,
        "max_steps": 5, "learning_rate": 1e-2, "optim": "sgd", "logging_steps": 1, "report_to": [],
        "disable_tqdm": True, "save_strategy": "no", "use_cpu": True,
        "dataloader_pin_memory": False, **more,
    }  # fmt: skip


def trainer(tiny, folder, loss, accumulation=1, watched=True):
    """A stock Trainer, of a loss or of its own; rows of digits make its steps uneven."""
    loss_function = None
    if loss is not None:
        loss_function = sb.compute_loss_func(loss, tiny.tokenizer)
    stock = Trainer(
        AutoModelForCausalLM.from_pretrained(tiny.base),
        TrainingArguments(**settings_of(folder, accumulation)),
        DataCollatorForSeq2Seq(tiny.tokenizer),
        train_dataset=sums(tiny.tokenizer, 40),
        eval_dataset=sums(tiny.tokenizer, 8),
        compute_loss_func=loss_function,
    )
    if loss_function is not None and watched:
        loss_function.watch(stock)
    return stock


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
        ours = losses(trainer(tiny, tmp_path, "ce", accumulation, watched))
        assert ours == pytest.approx(stock, rel=1e-4)


@pytest.mark.parametrize("loss", ["smmd", "ntl", "gce", "ntil[noise=0]"])
def test_gradient_accumulation_changes_nothing(tiny, tmp_path, loss):
    at_once = trainer(tiny, tmp_path, loss, 1)
    split = trainer(tiny, tmp_path, loss, 4)
    expected = losses(at_once)

    assert losses(split) == pytest.approx(expected, rel=1e-4)

    assert moved(at_once.model, tiny.base)

    weights = dict(at_once.model.named_parameters())
    for name, weight in split.model.named_parameters():
        torch.testing.assert_close(weight, weights[name], rtol=1e-4, atol=1e-6)

    # GCE divides by tokens, which the Trainer counts.
    unwatched = 4 if loss == "gce" else 1
    alone = trainer(tiny, tmp_path, loss, unwatched, False)
    assert losses(alone) == pytest.approx(expected, rel=1e-4)
    if loss != "gce":
        with expect_user_error(r"numeric units .*watch\(trainer\)"):
            trainer(tiny, tmp_path, loss, 4, False).train()


@pytest.mark.filterwarnings("ignore")  # of TRL
@pytest.mark.parametrize("count", [3, pytest.param(4, id="trl")])
def test_the_snippets_of_the_page_make_the_steps_of_plain_pytorch(tmp_path, count):
    if count == 4:
        pytest.importorskip("trl", reason="TRL is not installed")
    page = (ROOT / "docs/python-api.md").read_text(encoding="utf-8")
    snippets = [text for _, text in blocks(page.partition("## In other trainers")[2])]
    folder = model_card("builtin/tiny").folder
    tokenizer = load_tokenizer(folder)
    rows, collator = sums(tokenizer, 8), DataCollatorForSeq2Seq(tokenizer)
    exact = {
        "max_steps": 2,
        "lr_scheduler_type": "constant",
        "max_grad_norm": 0,
        "bf16": False,
    }
    names = {
        "tokenizer": tokenizer, "loader": [collator(rows)] * 2, "collator": collator,
        "data": Dataset.from_list(rows), "settings": settings_of(tmp_path, 2, **exact),
    }  # fmt: skip
    start, *models = [
        AutoModelForCausalLM.from_pretrained(folder) for _ in range(1 + count)
    ]

    for model, snippet in zip(models, snippets, strict=False):
        names |= {
            "model": model,
            "optimizer": torch.optim.SGD(model.parameters(), lr=1e-2),
        }
        exec(snippet, names)
        of_three = (of_model.parameters() for of_model in (start, models[0], model))
        for untrained, plain, trained in zip(*of_three, strict=True):
            assert not torch.equal(untrained, trained)
            torch.testing.assert_close(trained, plain, rtol=1e-4, atol=1e-6)
