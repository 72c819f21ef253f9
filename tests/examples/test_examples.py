"""The files of examples/ do what they say."""

import random
import runpy
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    DataCollatorForSeq2Seq,
    Trainer,
    TrainingArguments,
)

import smmd_bench as sb
from smmd_bench.conformance.suite import violations
from smmd_bench.plugin_system import registry

from ..conftest import TOKENIZERS

pytestmark = pytest.mark.engine

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    ("file", "spec"), [("own_task.py", "doubling"), ("own_loss.py", "huber[delta=2]")]
)
def test_a_plugin_of_ones_own_keeps_its_contract(file, spec):
    registry.load_plugin_file(EXAMPLES / file)
    assert violations(spec) == []


def test_the_loss_of_ones_own_is_zero_at_a_perfect_prediction():
    registry.load_plugin_file(EXAMPLES / "own_loss.py")
    tokenizer = AutoTokenizer.from_pretrained(TOKENIZERS / "digit")
    vocabulary = sb.numeric_vocabulary(tokenizer)
    loss, labels = registry.load_loss("huber[delta=2]").bind(vocabulary), vocabulary.token_ids[None]
    logits = torch.full((1, 10, len(tokenizer)), -50.0)
    logits[0, torch.arange(10), labels[0]] = 50.0
    assert float(sb.numeric_objective(loss, logits, labels).auxiliary) < 1e-6
    assert float(sb.numeric_objective(loss, logits.roll(1, 1), labels).auxiliary) > 0.4


def sums(tokenizer, count):
    """Sums of one to four digits, of which the result is supervised: rows of unequal length."""
    rng = random.Random(0)
    rows = []
    for _ in range(count):
        a, b = rng.randrange(10 ** rng.randrange(1, 5)), rng.randrange(10)
        prompt, target = (
            tokenizer(x, add_special_tokens=False)["input_ids"] for x in (f"{a}+{b}=", str(a + b))
        )
        target.append(tokenizer.eos_token_id)
        labels = [-100] * len(prompt) + target
        ids = prompt + target
        rows.append({"input_ids": ids, "attention_mask": [1] * len(ids), "labels": labels})
    return rows


def trainer(tiny, folder, loss, accumulation=1):
    """The example's Trainer, or transformers' own where there is no loss; steps of 8 examples."""
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
    if loss is None:
        return Trainer(processing_class=tiny.tokenizer, **arguments)
    own = runpy.run_path(str(EXAMPLES / "own_trainer.py"))["NumericTrainer"]
    return own(loss, tiny.tokenizer, **arguments)


def losses(trainer):
    """Of every step, then of the evaluation."""
    trainer.train()
    logged = [line["loss"] for line in trainer.state.log_history if "loss" in line]
    assert len(logged) == 5
    return [*logged, trainer.evaluate()["eval_loss"]]


@pytest.mark.parametrize("accumulation", [1, 4])
def test_the_trainer_of_ones_own_is_the_stock_trainer_with_ce(tiny, tmp_path, accumulation):
    stock = losses(trainer(tiny, tmp_path, None, accumulation))
    assert losses(trainer(tiny, tmp_path, "ce", accumulation)) == pytest.approx(stock, rel=1e-4)


@pytest.mark.parametrize("loss", ["smmd", "gce", "ntil[noise=0]"])
def test_gradient_accumulation_changes_nothing_in_it(tiny, tmp_path, loss):
    whole, split = (trainer(tiny, tmp_path, loss, accumulation) for accumulation in (1, 4))
    assert losses(split) == pytest.approx(losses(whole), rel=1e-4)
    start = AutoModelForCausalLM.from_pretrained(tiny.base)
    models = (m.parameters() for m in (whole.model, split.model, start))
    moved = 0.0
    for a, b, before in zip(*models, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)
        moved += float((a - before).detach().abs().sum())
    assert moved > 0


def test_its_loss_is_cross_entropy_and_three_times_smmd(tiny, tmp_path):
    own = trainer(tiny, tmp_path, "smmd")
    batch = own.data_collator(sums(tiny.tokenizer, 8))
    own.model.eval()
    with torch.no_grad():
        total, outputs = own.compute_loss(own.model, dict(batch), return_outputs=True)
        cross_entropy = own.model(**batch).loss
    vocabulary = sb.numeric_vocabulary(tiny.tokenizer)
    target = vocabulary.index_of(batch["labels"][:, 1:])  # [B, T]
    numeric = target >= 0
    p = outputs.logits[:, :-1][numeric][:, vocabulary.token_ids].double().softmax(-1)  # [M, N]
    r = p - torch.nn.functional.one_hot(target[numeric], 10)
    matrix = registry.load_loss("smmd").matrix(vocabulary)
    auxiliary = ((r @ matrix) * r).sum(-1).mean()
    assert float(total) == pytest.approx(float(cross_entropy + 3 * auxiliary), rel=1e-5)


def test_its_noise_is_drawn_anew_at_every_step(tiny, tmp_path):
    def twice(loss):
        own = trainer(tiny, tmp_path, loss)
        batch = own.data_collator(sums(tiny.tokenizer, 8))
        own.model.eval()
        return [float(own.compute_loss(own.model, batch).detach()) for _ in range(2)]

    assert len(set(twice("ntil"))) == 2
    assert len(set(twice("ntil[noise=0]"))) == 1


def test_it_has_fewer_than_thirty_lines():
    assert len((EXAMPLES / "own_trainer.py").read_text().splitlines()) < 30
