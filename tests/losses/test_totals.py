"""CE, GCE and the control in the objective, against the cross-entropy of torch."""

import pytest
import torch
from torch.nn import functional as F

from smmd_bench.objective.objective import numeric_objective

from .cases import DIGITS, bind, gaussian

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
    losses = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none")
    supervised = labels.flatten() != -100
    numeric = torch.isin(labels.flatten(), bound.token_ids)
    tokens, numbers = int(supervised.sum()), int(numeric.sum())
    p = (-losses).exp()
    share = numeric * (p.detach() if name == "numeric_dft" else 1)
    expected = ((supervised + share * weight * tokens / numbers) * losses).sum() / tokens
    out = numeric_objective(bound, logits, labels)
    torch.testing.assert_close(out.total, expected)
    if name == "numeric_dft":
        expected = losses.sum() / tokens + weight * (1 - p)[numeric].mean()
    found, wanted = (torch.autograd.grad(x, logits)[0] for x in (out.total, expected))
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize(
    ("spec", "whole", "added"),
    [
        ("gce", 0, None),
        ("gce[support=vocabulary]", 1, None),
        ("gce[gate=1]", 1, None),
        ("gce[gate=0.3]", 0.3, None),
        ("gce[add_cross_entropy=true,lambda=0.5]", 0, 0.5),
    ],
)
def test_gce_is_that_of_soft_targets(spec, whole, added):
    """Over V_num, over all tokens, or between, for these differ by -log of the mass on V_num."""
    bound = bind(DIGITS, spec)
    logits, labels = batch(ids := bound.token_ids)
    out = numeric_objective(bound, logits, labels)
    flat, y = logits[labels != -100], labels[labels != -100]  # [T, V], [T]
    index = bound.vocabulary.index_of(y)
    numeric = index >= 0
    q = torch.tensor([gaussian(DIGITS, i, 0.5) for i in index[numeric].tolist()]).double()
    wide = torch.zeros(len(q), V, dtype=torch.float64).index_copy(1, ids, q)
    x = flat[numeric]
    gce = whole * F.cross_entropy(x, wide) + (1 - whole) * F.cross_entropy(x[:, ids], q)
    full = F.cross_entropy(flat, y)
    torch.testing.assert_close(out.cross_entropy, full)
    assert out.auxiliary.item() == pytest.approx(gce.item())
    others = F.cross_entropy(flat[~numeric], y[~numeric], reduction="sum")
    expected = (others + gce * len(q)) / len(y) if added is None else full + added * gce
    assert out.total.item() == pytest.approx(expected.item())
