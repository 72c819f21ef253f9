"""Every loss over the numeric tokens of two small tokenizers, 10 and 1,000 of them."""

import pytest
import torch

from smmd_bench.objective.objective import numeric_objective
from smmd_bench.plugin_system.registry import load_loss, names

from .cases import encoded, random_logits

SPECS = sorted({*names("losses"), "raft[digits=4]"} - {"ce", "raft"})
TEXT = "In 1987 it was 3, then -45.5 of 678 and 90"


@pytest.mark.parametrize(("name", "size"), [("digit", 10), ("triple", 1000)])
@pytest.mark.parametrize("spec", SPECS)
def test_a_step_against_its_gradient_makes_it_less(spec, name, size):
    tokenizer, vocabulary, labels = encoded(name, TEXT)
    assert len(vocabulary) == size
    loss = load_loss(spec).bind(vocabulary)
    logits = random_logits(labels, len(tokenizer))
    before = numeric_objective(loss, logits, labels)
    assert before.units > 0
    (gradient,) = torch.autograd.grad(before.auxiliary, logits)
    numeric = torch.isin(labels, vocabulary.token_ids)
    assert not bool(gradient[~numeric].any())
    covered = loss.covers(vocabulary.index_of(labels)[numeric])
    assert gradient[numeric].any(-1).tolist() == covered.tolist()
    step = 1e-3 * gradient / gradient.norm()
    after = numeric_objective(loss, (logits - step).detach(), labels)
    assert after.auxiliary < before.auxiliary
