"""CE, GCE and the control in the objective, against the cross-entropy of torch."""

import pytest
import torch
from torch.nn import functional as F

from smmd_bench.objective.objective import numeric_objective

from .cases import DIGITS, bind, gaussian, random_targets

V = 40


def batch(ids):
    """Logits [2, 9, V] and labels [2, 9], half of them numeric and one ignored."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(2, 9, V, generator=generator, dtype=torch.float64)
    labels = torch.randint(V, (2, 9), generator=generator)
    labels[:, ::2] = ids[torch.randint(len(ids), (2, 5), generator=generator)]
    labels[0, 1] = -100
    return logits.requires_grad_(), labels


def test_ce_adds_a_zero_over_no_units_with_a_gradient_path():
    targets, bound = random_targets(DIGITS), bind(DIGITS, "ce")
    total, units = bound(targets)
    assert (total.item(), units, bound.units(targets)) == (0.0, 0, 0)
    assert not torch.autograd.grad(total, targets.logits)[0].any()


def test_smoothing_is_that_of_torch():
    bound = bind(DIGITS, "ce[smoothing=0.1]")
    logits, labels = batch(bound.vocabulary.token_ids)
    out = numeric_objective(bound, logits, labels)
    flat = logits.flatten(0, 1), labels.flatten()
    torch.testing.assert_close(out.total, F.cross_entropy(*flat, label_smoothing=0.1))
    torch.testing.assert_close(out.cross_entropy, F.cross_entropy(*flat))


@pytest.mark.parametrize("weight", [0.5, 1.0])
def test_the_control_weights_numeric_tokens_more_and_changes_no_other(weight):
    bound = bind(DIGITS, f"numeric_ce[lambda={weight}]")
    logits, labels = batch(bound.token_ids)
    losses = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none")
    supervised = labels.flatten() != -100
    numeric = torch.isin(labels.flatten(), bound.token_ids)
    tokens, numbers = int(supervised.sum()), int(numeric.sum())
    expected = ((supervised + numeric * weight * tokens / numbers) * losses).sum() / tokens
    out = numeric_objective(bound, logits, labels)
    torch.testing.assert_close(out.total, expected)
    found, wanted = (torch.autograd.grad(x, logits)[0] for x in (out.total, expected))
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize(
    ("spec", "whole", "added"),
    [
        ("gce", False, None),
        ("gce[support=vocabulary]", True, None),
        ("gce[add_cross_entropy=true,lambda=0.5]", False, 0.5),
    ],
)
def test_gce_is_that_of_soft_targets(spec, whole, added):
    """Over V_num or over all tokens."""
    bound = bind(DIGITS, spec)
    logits, labels = batch(ids := bound.token_ids)
    out = numeric_objective(bound, logits, labels)
    flat, y = logits[labels != -100], labels[labels != -100]  # [T, V], [T]
    index = bound.vocabulary.index_of(y)
    numeric = index >= 0
    q = torch.tensor([gaussian(DIGITS, i, 0.5) for i in index[numeric].tolist()]).double()
    wide = torch.zeros(len(q), V, dtype=torch.float64).index_copy(1, ids, q)
    x = flat[numeric]
    gce = F.cross_entropy(x, wide) if whole else F.cross_entropy(x[:, ids], q)
    full = F.cross_entropy(flat, y)
    torch.testing.assert_close(out.cross_entropy, full)
    assert out.auxiliary.item() == pytest.approx(gce.item())
    others = F.cross_entropy(flat[~numeric], y[~numeric], reduction="sum")
    expected = (others + gce * len(q)) / len(y) if added is None else full + added * gce
    assert out.total.item() == pytest.approx(expected.item())
