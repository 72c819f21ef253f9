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
    first_epoch = list(sampler)
    sampler.set_epoch(1)
    assert first_epoch != list(sampler)

    def padding(batches):
        """Padded tokens over tokens."""
        return 64 * batches.max(1).sum() / lengths.sum()

    batches = lengths[first_epoch].reshape(-1, 64)
    assert padding(batches) < 1.1
    assert padding(lengths.reshape(-1, 64)) > 1.5  # in the order of the data

    means = batches.mean(1)
    correlation = np.corrcoef(means[:-1], means[1:])[0, 1]
    assert abs(correlation) < 0.3
