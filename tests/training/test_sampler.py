import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from smmd_bench.training.sampler import LengthGroups


@given(
    st.lists(st.integers(1, 50), min_size=1, max_size=300), st.integers(1, 16), st.integers(0, 9)
)
def test_an_epoch_is_a_permutation_that_follows_from_seed_and_epoch(lengths, batch_size, seed):
    first, again = (LengthGroups(np.array(lengths), batch_size, seed) for _ in range(2))
    assert sorted(first) == list(range(len(lengths)))
    again.set_epoch(3)
    list(first)
    first.set_epoch(3)
    assert list(first) == list(again)


def test_epochs_differ_and_batches_hold_like_lengths():
    lengths = np.random.default_rng(0).integers(10, 60, size=6400)
    sampler = LengthGroups(lengths, 64, seed=0)
    one = np.array(list(sampler)).reshape(-1, 64)
    sampler.set_epoch(1)
    assert one.ravel().tolist() != list(sampler)
    padded = lengths[one].max(1).sum() * 64 / lengths.sum()
    at_random = lengths.reshape(-1, 64).max(1).sum() * 64 / lengths.sum()
    assert padded < 1.1 < 1.5 < at_random
    means = lengths[one].mean(1)
    assert abs(np.corrcoef(means[:-1], means[1:])[0, 1]) < 0.3
