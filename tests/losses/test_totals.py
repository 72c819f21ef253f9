"""CE, GCE and the control in the objective, against the cross-entropy of torch."""

import pytest
import torch
from torch.nn import functional as F

from smmd_bench.objective.objective import numeric_objective

from .cases import DIGITS, assert_same_with_gradient, bind, gaussian

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
@pytest.mark.parametrize("name", ["numeric_ce", "numeric_dft"])
def test_the_controls_weight_numeric_tokens_more_and_change_no_other(name, weight):
    """DFT by the probability, too, which is held constant: its gradient is that of 1 - p."""
    bound = bind(DIGITS, f"{name}[lambda={weight}]")
    logits, labels = batch(bound.token_ids)
    flat_labels = labels.flatten()
    losses = F.cross_entropy(logits.flatten(0, 1), flat_labels, reduction="none")
    numeric = losses[torch.isin(flat_labels, bound.token_ids)]
    auxiliary = numeric.mean()
    if name == "numeric_dft":
        p = (-numeric).exp()
        value = (p * numeric).mean()
        slope = (1 - p).mean()
        auxiliary = value.detach() + slope - slope.detach()

    out = numeric_objective(bound, logits, labels)
    tokens = (labels != -100).sum()
    cross_entropy = losses.sum() / tokens
    assert_same_with_gradient(out.total, cross_entropy + weight * auxiliary, logits)


@pytest.mark.parametrize(
    ("spec", "share_of_all", "added"),
    [
        ("gce", 0, None),
        ("gce[support=vocabulary]", 1, None),
        ("gce[gate=1]", 1, None),
        ("gce[gate=0.3]", 0.3, None),
        ("gce[add_cross_entropy=true,lambda=0.5]", 0, 0.5),
    ],
)
def test_gce_is_that_of_soft_targets(spec, share_of_all, added):
    """Over V_num, over all tokens, or between, for these differ by -log of the mass on V_num."""
    bound = bind(DIGITS, spec)
    ids = bound.token_ids
    logits, labels = batch(ids)
    out = numeric_objective(bound, logits, labels)

    is_supervised = labels != -100
    x = logits[is_supervised]  # [T, V]
    y = labels[is_supervised]  # [T]
    index = bound.vocabulary.index_of(y)
    numeric = index >= 0
    at_numbers = x[numeric]
    rows = [gaussian(DIGITS, i, 0.5) for i in index[numeric].tolist()]
    q = torch.tensor(rows, dtype=torch.float64)
    q_of_all_tokens = torch.zeros_like(at_numbers).index_copy(1, ids, q)
    over_numeric = F.cross_entropy(at_numbers[:, ids], q)
    over_all = F.cross_entropy(at_numbers, q_of_all_tokens)
    gce = over_numeric + share_of_all * (over_all - over_numeric)
    assert out.auxiliary.item() == pytest.approx(gce.item())

    losses = F.cross_entropy(x, y, reduction="none")
    cross_entropy = losses.mean()
    torch.testing.assert_close(out.cross_entropy, cross_entropy)
    if added is None:
        others = losses[~numeric]
        expected = (others.sum() + gce * len(q)) / len(y)
    else:
        expected = cross_entropy + added * gce
    assert out.total.item() == pytest.approx(expected.item())
