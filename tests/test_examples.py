"""The files of examples/ do what they say."""

from pathlib import Path

import torch
from transformers import AutoTokenizer

import smmd_bench as sb
from smmd_bench import registry
from smmd_bench.contracts import Loss, Task

EXAMPLES = Path(__file__).parent.parent / "examples"
DATA = Path(__file__).parent / "data"


def test_the_task_of_ones_own() -> None:
    registry.load_plugin_file(EXAMPLES / "own_task.py")
    task = registry.load_task("doubling[digits=2]")
    assert isinstance(task, Task)
    splits = {s: {e.prompt for e in task.examples(s, 0)} for s in ("train", "validation", "test")}
    assert not splits["train"] & splits["test"]
    assert not splits["validation"] & splits["test"]
    for example in task.examples("test", 0, 50):
        assert task.parse(example.target) == example.answer


def test_the_loss_of_ones_own_is_zero_at_a_perfect_prediction() -> None:
    registry.load_plugin_file(EXAMPLES / "own_loss.py")
    loss = registry.load_loss("huber[delta=2]")
    assert isinstance(loss, Loss)
    tokenizer = AutoTokenizer.from_pretrained(DATA / "tokenizers" / "digit")
    vocabulary = sb.numeric_vocabulary(tokenizer)
    labels = vocabulary.token_ids[None, :]
    logits = torch.full((1, 10, len(tokenizer)), -50.0)
    logits[0, torch.arange(10), labels[0]] = 50.0
    out = sb.numeric_objective(loss.bind(vocabulary), logits, labels)
    assert float(out.auxiliary) < 1e-6
    worse = sb.numeric_objective(loss.bind(vocabulary), logits.roll(1, 1), labels)
    assert float(worse.auxiliary) > 0.4
