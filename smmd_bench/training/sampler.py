"""The order of training examples: batches of like length in random order, and in several processes
those of one process, split, nothing repeated."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

_BATCHES_A_GROUP = 16


class LengthGroups(torch.utils.data.Sampler[int]):  # type: ignore[misc]
    """Indices such that each batch holds examples of like length, every epoch in another order.

    A random permutation is cut in groups of 16 batches, each group is sorted by length and cut in
    batches, and all batches are shuffled; what does not fill a batch comes last. (transformers'
    `group_by_length` leaves the batches of a group in order of length, and the loss saws.)
    The order follows from the seed and the epoch alone, so a resumed training sees the same one.

    lengths: [n] tokens. batch_size: examples an optimiser step.
    """

    def __init__(self, lengths: NDArray[np.int64], batch_size: int, seed: int) -> None:
        self.lengths, self.batch_size, self.seed = lengths, batch_size, seed
        self.epoch = 0

    def __len__(self) -> int:
        return len(self.lengths)

    def set_epoch(self, epoch: int) -> None:
        """Called by the Trainer at the start of each epoch."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        rng = np.random.default_rng([self.seed, self.epoch])
        order = rng.permutation(len(self.lengths))
        full = len(order) // self.batch_size * self.batch_size
        in_batches, last_batch = np.split(order, [full])
        group_size = self.batch_size * _BATCHES_A_GROUP

        batches: list[NDArray[np.int64]] = []
        for start in range(0, len(in_batches), group_size):
            group = in_batches[start : start + group_size]
            # NumPy's faster sorts order equal lengths differently from machine to machine.
            by_length = np.argsort(self.lengths[group], kind="stable")
            group = group[by_length]
            batches += np.split(group, len(group) // self.batch_size)
        rng.shuffle(batches)

        for batch in [*batches, last_batch]:
            yield from batch.tolist()


class RankBatches(torch.utils.data.Sampler[list[int]]):  # type: ignore[misc]
    """The micro-batches of one process, `accumulation` of them an optimiser step.

    A step has the next `size` examples of the order, the last one what is left; it is cut in
    micro-batches, which the processes take in turn. Where none is left for a process, it gets one
    example without targets, -1 - k of `TokenisedExamples`: all must take part in every step.
    """

    def __init__(
        self, order: Any, size: int, *, accumulation: int, rank: int, processes: int
    ) -> None:
        self.order, self.size, self.accumulation = order, size, accumulation
        self.rank, self.processes = rank, processes

    def __len__(self) -> int:
        return -(-len(self.order) // self.size) * self.accumulation

    def set_epoch(self, epoch: int) -> None:
        """Called by the Trainer at the start of each epoch."""
        self.order.set_epoch(epoch)

    def __iter__(self) -> Iterator[list[int]]:
        order = [*self.order]
        micro = self.size // self.accumulation // self.processes
        for start in range(0, len(order), self.size):
            step = order[start : start + self.size]
            for number in range(self.accumulation):
                at = (number * self.processes + self.rank) * micro
                yield step[at : at + micro] or [-1 - step[0]]
