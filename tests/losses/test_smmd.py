"""The kernels of SMMD, and what they make of the loss."""

import math

import pytest
import torch

from smmd_bench.plugin_system.registry import load_loss

from .cases import DIGITS, THOUSAND, UNEVEN, vocabulary

VARIANTS = [
    "smmd", "smmd[sigma=0.5+3+5.5]", "smmd[term=mmd]", "smmd[term=smooth]", "smmd[alpha=0.7]",
    "smmd[alpha=0]", "smmd[squash=4]", "smmd[kernel=shuffled]", "smmd[kernel=random,term=mmd]",
]  # fmt: skip


def gram(values, spec="smmd"):
    return load_loss(spec).gram(vocabulary(values))


@pytest.mark.parametrize("spec", VARIANTS)
@pytest.mark.parametrize("values", [DIGITS, UNEVEN])
def test_is_never_negative(spec, values):
    matrix = load_loss(spec).matrix(vocabulary(values))
    assert torch.equal(matrix, matrix.T)
    on_residuals = matrix - matrix.mean(0) - matrix.mean(1)[:, None] + matrix.mean()
    assert float(torch.linalg.eigvalsh(on_residuals).min()) > -1e-12


def test_a_random_kernel_is_that_of_the_appendix():
    K = gram(THOUSAND[:200], "smmd[kernel=random,term=mmd]")
    assert torch.equal(K.diagonal(), torch.ones(200).double())
    assert set(K.unique().tolist()) <= {x**5 for x in (-1.0, -0.5, 0.0, 0.5, 1.0)}
    assert len(K.unique()) == 5
    assert float(torch.linalg.eigvalsh(K).min()) > -1e-9


@pytest.mark.parametrize("kernel", ["shuffled", "random"])
def test_a_kernel_seed_always_gives_the_same_kernel(kernel):
    spec = f"smmd[kernel={kernel},term=mmd,kernel_seed={{}}]"
    first = gram(DIGITS, spec.format(3))
    assert torch.equal(first, gram(DIGITS, spec.format(3)))
    assert not torch.equal(first, gram(DIGITS, spec.format(4)))


def test_the_shuffle_of_seed_0_is_frozen():
    """The first row, by numpy.random.RandomState(0).permutation(10)."""
    expected = [math.exp(-((v - 2) ** 2) / 8) for v in (2, 8, 4, 9, 1, 6, 7, 3, 0, 5)]
    row = gram(DIGITS, "smmd[kernel=shuffled]")[0].tolist()
    assert row == pytest.approx(expected, rel=1e-12)
