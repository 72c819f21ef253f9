"""GCE against its formula (section 4.2), by hand and by F.cross_entropy with soft targets."""

import math

import pytest
import torch
from torch.nn import functional as F

from smmd_bench.objective.objective import numeric_objective

from .cases import DIGITS, UNEVEN, bind, predictions, random_targets


def gaussian(values, y, sigma):
    """q by its formula."""
    weights = [math.exp(-((v - values[y]) ** 2) / (2 * sigma**2)) for v in values]
    return [w / sum(weights) for w in weights]


@pytest.mark.parametrize("values", [DIGITS, UNEVEN])
@pytest.mark.parametrize("sigma", [0.5, 3.0])
def test_is_the_literal_sum(values, sigma):
    targets = random_targets(values)
    expected = -sum(
        q * math.log(one)
        for p, y in predictions(targets)
        for q, one in zip(gaussian(values, y, sigma), p, strict=True)
    )
    total, units = bind(values, f"gce[sigma={sigma}]")(targets)
    assert total.item() == pytest.approx(expected, rel=1e-12)
    assert units == 7


@pytest.mark.parametrize(
    ("spec", "whole", "added"),
    [
        ("gce", False, None),
        ("gce[support=vocabulary]", True, None),
        ("gce[add_cross_entropy=true,lambda=0.5]", False, 0.5),
    ],
)
def test_in_the_objective(spec, whole, added):
    """Against F.cross_entropy with soft targets, over V_num or over all tokens."""
    torch.manual_seed(0)
    V, bound = 40, bind(DIGITS, spec)
    ids = bound.token_ids
    logits = torch.randn(2, 9, V, dtype=torch.float64)
    labels = torch.randint(V, (2, 9))
    labels[:, ::2] = ids[torch.randint(10, (2, 5))]
    labels[0, 1] = -100
    out = numeric_objective(bound, logits, labels)
    flat, y = logits[labels != -100], labels[labels != -100]  # [T, V], [T]
    index = bound.vocabulary.index_of(y)
    numeric = index >= 0
    q = torch.tensor([gaussian(DIGITS, i, 0.5) for i in index[numeric].tolist()]).double()
    wide = torch.zeros(len(q), V, dtype=torch.float64).index_copy(1, ids, q)
    x = flat[numeric]
    gce = F.cross_entropy(x, wide) if whole else F.cross_entropy(x[:, ids], q)
    full = F.cross_entropy(flat, y)
    assert out.cross_entropy.item() == pytest.approx(full.item())
    assert out.auxiliary.item() == pytest.approx(gce.item())
    others = F.cross_entropy(flat[~numeric], y[~numeric], reduction="sum")
    expected = (others + gce * len(q)) / len(y) if added is None else full + added * gce
    assert out.total.item() == pytest.approx(expected.item())
