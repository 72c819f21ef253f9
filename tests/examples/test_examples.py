"""The files of examples/ do what they say."""

from pathlib import Path

import pytest
import torch
from transformers import AutoTokenizer

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
