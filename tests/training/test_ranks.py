"""Trainings in several processes: the same steps and gradients as in one, nothing repeated."""

import itertools
import json
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

from .trained import require_same_log

LOSSES = ("ce", "ntil", "smmd")


class Order:
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __iter__(self):
        return iter(range(self.count))


@given(st.integers(1, 60), st.integers(1, 4), st.integers(1, 4), st.integers(1, 4))
def test_the_processes_share_every_step_and_repeat_nothing(
    count, micro, accumulation, processes
):
    size = micro * accumulation * processes
    steps = -(-count // size)
    seen = [[] for _ in range(steps)]

    for rank in range(processes):
        batches = RankBatches(
            Order(count),
            size,
            accumulation=accumulation,
            rank=rank,
            processes=processes,
        )
        assert len(batches) == steps * accumulation == len([*batches])
        for number, batch in enumerate(batches):
            assert 0 < len(batch) <= micro
            seen[number // accumulation] += [index for index in batch if index >= 0]

    # Without a repetition: the numbers of a step, in whatever order.
    assert [sorted(step) for step in seen] == [
        [*range(start, min(start + size, count))] for start in range(0, count, size)
    ]


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
    loader, order = (
        trainer.get_train_dataloader(),
        SeedableRandomSampler(rows, data_seed=7),
    )

    for epoch in range(2):
        loader.set_epoch(epoch)
        order.set_epoch(epoch)
        assert [int(i) for batch in loader for i in batch["example"]] == [*order]


@pytest.fixture(scope="module")
def gradients(tiny, tmp_path_factory):
    """By number of processes: the file of each case."""
    cases = [
        {"base": str(tiny.base), "loss": loss, "head": head, "micro": 2}
        for head, loss in itertools.product(("frozen", "tied", "trainable"), LOSSES)
    ]

    def run(processes, strategy="ddp"):
        folder = tmp_path_factory.mktemp(f"{processes}")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        environment = dict(os.environ)
        environment["SMMD_BENCH_PROCESSES"] = str(processes)
        environment["SMMD_BENCH_STRATEGY"] = strategy
        environment["OMP_NUM_THREADS"] = "1"
        if processes > 1:
            environment["WORLD_SIZE"] = str(processes)
            environment["MASTER_ADDR"] = "127.0.0.1"
            environment["MASTER_PORT"] = port

        request = json.dumps({"out": str(folder / "out"), "cases": cases})
        command = [sys.executable, "-m", "tests.training.ranks", request]
        running = []
        for rank in range(processes):
            ranks = (
                {"RANK": str(rank), "LOCAL_RANK": str(rank)} if processes > 1 else {}
            )
            running.append(subprocess.Popen(command, env=environment | ranks))
        assert [process.wait() for process in running] == [0] * processes
        return [
            torch.load(folder / f"out.{number}.pt", weights_only=True)
            for number in range(len(cases))
        ]

    return cases, run


@pytest.mark.engine
@pytest.mark.slow
def test_gradients_are_those_of_one_process(gradients):
    cases, run = gradients
    of_one_process = run(1)
    for processes, strategy in ((2, "ddp"), (2, "fsdp2"), (4, "fsdp2")):
        of_several = run(processes, strategy)
        for case, alone, several in zip(cases, of_one_process, of_several, strict=True):
            where = f"{case} in {processes} processes ({strategy})"
            assert several["sharded"] == (strategy == "fsdp2"), where
            assert len(alone["steps"]) == 3, where
            steps = zip(alone["steps"], several["steps"], strict=True)
            for expected, gradients in steps:
                require_same_gradients(gradients, expected, where)
            require_same_log(several["log"], alone["log"], 1e-6)


def require_same_gradients(gradients, expected, where):
    assert gradients.keys() == expected.keys(), where
    largest = max(float(gradient.abs().max()) for gradient in expected.values())
    assert largest > 0, where
    for name, gradient in gradients.items():
        torch.testing.assert_close(
            gradient, expected[name], rtol=0, atol=1e-6 * largest
        )
