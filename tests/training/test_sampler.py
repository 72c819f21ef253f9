import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from smmd_bench.training.sampler import LengthGroups


@given(
    st.lists(st.integers(1, 50), min_size=1, max_size=300),
    st.integers(1, 16),
    st.integers(0, 9),
)
def test_an_epoch_is_a_permutation_that_follows_from_seed_and_epoch(
    lengths, batch_size, seed
):
    sampler = LengthGroups(np.array(lengths), batch_size, seed)
    assert sorted(sampler) == list(range(len(lengths)))

    sampler.set_epoch(3)
    resumed = LengthGroups(np.array(lengths), batch_size, seed)
    resumed.set_epoch(3)
    assert list(sampler) == list(resumed)


def test_epochs_differ_and_batches_hold_like_lengths():
    lengths = np.random.default_rng(0).integers(10, 60, size=6400)
    sampler = LengthGroups(lengths, 64, seed=0)
    order = list(sampler)
    sampler.set_epoch(1)

    assert order != list(sampler)

    batches = lengths[order].reshape(-1, 64)
    widest_of_each = batches.max(axis=1)
    assert 64 * widest_of_each.sum() < 1.1 * lengths.sum()

    widest_at_random = lengths.reshape(-1, 64).max(axis=1)
    assert 64 * widest_at_random.sum() > 1.5 * lengths.sum()

    # Short and long batches come in no order.
    means = batches.mean(axis=1)
    correlation = np.corrcoef(means[:-1], means[1:])[0, 1]
    assert abs(correlation) < 0.3
