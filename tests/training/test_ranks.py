"""Trainings in several processes: the same steps and gradients as in one, nothing repeated."""

import itertools
import json
import math
import os
import socket
import subprocess
import sys

import pytest
import torch
from accelerate.data_loader import SeedableRandomSampler
from hypothesis import given
from hypothesis import strategies as st

from smmd_bench.training.sampler import RankBatches

LOSSES = ("ce", "ntil", "smmd")


class Order:
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __iter__(self):
        return iter(range(self.count))


@given(st.integers(1, 60), st.integers(1, 4), st.integers(1, 4), st.integers(1, 4))
def test_the_processes_share_every_step_and_repeat_nothing(count, micro, accumulation, processes):
    size = micro * accumulation * processes
    steps = math.ceil(count / size)
    examples = [[] for _ in range(steps)]

    for rank in range(processes):
        share = RankBatches(
            Order(count), size, accumulation=accumulation, rank=rank, processes=processes
        )
        batches = [*share]
        assert len(batches) == len(share) == steps * accumulation
        for number, batch in enumerate(batches):
            assert 0 < len(batch) <= micro
            examples[number // accumulation] += [i for i in batch if i >= 0]

    for step, seen in enumerate(examples):
        last = min((step + 1) * size, count)
        assert sorted(seen) == [*range(step * size, last)]


def test_the_order_is_that_of_one_process(tmp_path):
    from smmd_bench.models.recipe import Recipe
    from smmd_bench.training.stage import training_arguments
    from smmd_bench.training.trainer import ObjectiveTrainer

    arguments = training_arguments(Recipe(micro_batch_size=4), 7, tmp_path, saves=False)
    rows = [{"labels": torch.zeros(2), "example": torch.tensor(i)} for i in range(50)]
    trainer = ObjectiveTrainer(
        model=torch.nn.Linear(1, 1), args=arguments, train_dataset=rows,
        numeric_loss=None, sampler=None,
    )  # fmt: skip
    loader, order = trainer.get_train_dataloader(), SeedableRandomSampler(rows, data_seed=7)

    for epoch in range(2):
        loader.set_epoch(epoch)
        order.set_epoch(epoch)
        assert [int(i) for batch in loader for i in batch["example"]] == [*order]


@pytest.fixture(scope="module")
def gradients(tiny, tmp_path_factory):
    """The cases, and by number of processes what each of them gives."""
    heads = ("frozen", "tied", "trainable")
    cases = [
        {"base": str(tiny.base), "loss": loss, "head": head, "micro": 2}
        for head, loss in itertools.product(heads, LOSSES)
    ]

    def train(processes, strategy="ddp"):
        folder = tmp_path_factory.mktemp(f"{processes}")
        request = json.dumps({"out": str(folder / "out"), "cases": cases})
        command = [sys.executable, "-m", "tests.training.ranks", request]
        ranks = [
            subprocess.Popen(command, env={**os.environ, **environment})
            for environment in environments(processes, strategy)
        ]
        assert [rank.wait() for rank in ranks] == [0] * processes
        files = [folder / f"out.{number}.pt" for number in range(len(cases))]
        return [torch.load(file, weights_only=True) for file in files]

    return cases, train


def environments(processes, strategy):
    """What tells each rank of a training its place, as torchrun does."""
    common = {
        "SMMD_BENCH_PROCESSES": str(processes),
        "SMMD_BENCH_STRATEGY": strategy,
        "OMP_NUM_THREADS": "1",
    }
    if processes == 1:
        return [common]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    common |= {"WORLD_SIZE": str(processes), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    return [{**common, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(processes)]


@pytest.mark.engine
@pytest.mark.slow
def test_gradients_are_those_of_one_process(gradients):
    cases, train = gradients
    alone = train(1)
    for processes, strategy in ((2, "ddp"), (2, "fsdp2"), (4, "fsdp2")):
        for case, expected, result in zip(cases, alone, train(processes, strategy), strict=True):
            where = f"{case} in {processes} processes ({strategy})"
            assert result["sharded"] == (strategy == "fsdp2"), where
            assert len(expected["steps"]) == len(result["steps"]) == 3, where
            for step, expected_step in zip(result["steps"], expected["steps"], strict=True):
                require_equal_gradients(step, expected_step, where)
            for line, expected_line in zip(result["log"], expected["log"], strict=True):
                numbers = [line[name] for name in LOGGED]
                assert numbers == pytest.approx([expected_line[n] for n in LOGGED], rel=1e-6)


LOGGED = ("tokens", "loss", "cross_entropy")


def require_equal_gradients(step, expected, where):
    """Require the gradients of a step by name, but for rounding of the largest."""
    assert step.keys() == expected.keys(), where
    largest = max(float(gradient.abs().max()) for gradient in expected.values())
    assert largest > 0, where
    for name, gradient in expected.items():
        difference = (gradient - step[name]).abs().max()
        assert float(difference) <= 1e-6 * largest, where
