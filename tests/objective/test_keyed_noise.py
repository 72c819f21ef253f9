"""Noise that is a function of its key."""

import numpy as np
import pytest
import torch
from scipy import stats

from smmd_bench.contracts import gumbel, mixed

MASK = 2**64 - 1


def splitmix(key):
    """One step of SplitMix64 in Python's integers."""
    z = (key + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


@pytest.mark.parametrize("key", [0, 1, -1, 2**62, -(2**63), 2**63 - 1])
def test_is_splitmix64(key):
    assert int(mixed(key)) & MASK == splitmix(key & MASK)
    assert splitmix(0) == 0xE220A8397B1DCDAF  # the published first output for seed 0


@pytest.mark.parametrize("kind", [int, np.int64, torch.tensor])
def test_a_number_of_any_kind_has_the_same_hash(kind):
    keys = torch.arange(5)
    expected = [splitmix(splitmix(3) + key) for key in range(5)]
    hashes = mixed(kind(3), keys)
    assert [h & MASK for h in hashes.tolist()] == [e & MASK for e in expected]
    narrow = mixed(kind(3), keys.int())
    assert torch.equal(narrow, hashes)


def test_is_a_standard_gumbel_variate():
    noise = gumbel(mixed(torch.arange(300)[:, None], torch.arange(100)))
    assert noise.dtype == torch.float64
    assert bool(noise.isfinite().all())
    assert stats.kstest(noise.flatten().numpy(), "gumbel_r").pvalue > 0.01
