"""The control against the cross-entropy of torch, at the numeric positions alone."""

import pytest
import torch
from torch.nn import functional as F

from smmd_bench.objective.objective import numeric_objective

from .cases import DIGITS, UNEVEN, bind, random_targets, value

V = 40


def batch(ids):
    """Logits [2, 9, V] and labels [2, 9], half of them numeric and one ignored."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(2, 9, V, generator=generator, dtype=torch.float64)
    labels = torch.randint(V, (2, 9), generator=generator)
    labels[:, ::2] = ids[torch.randint(len(ids), (2, 5), generator=generator)]
    labels[0, 1] = -100
    return logits.requires_grad_(), labels


@pytest.mark.parametrize("weight", [0.5, 1.0])
def test_the_total_weights_numeric_tokens_more_and_changes_no_other(weight):
    bound = bind(DIGITS, f"numeric_ce[lambda={weight}]")
    logits, labels = batch(bound.token_ids)
    losses = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none")
    supervised = labels.flatten() != -100
    numeric = torch.isin(labels.flatten(), bound.token_ids)
    tokens, numbers = int(supervised.sum()), int(numeric.sum())
    weights = supervised + numeric * weight * tokens / numbers
    expected = (weights * losses).sum() / tokens
    out = numeric_objective(bound, logits, labels)
    torch.testing.assert_close(out.total, expected)
    found, wanted = (torch.autograd.grad(x, logits)[0] for x in (out.total, expected))
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("values", [DIGITS, UNEVEN])
def test_over_the_numeric_tokens_it_is_their_cross_entropy(values):
    targets = random_targets(values)
    expected = F.cross_entropy(targets.logits, targets.target, reduction="sum").item()
    bound = bind(values, "numeric_ce[support=numeric]")
    assert value(bound, targets) == pytest.approx(expected, rel=1e-12)
