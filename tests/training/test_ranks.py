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
    shares = [
        RankBatches(Order(count), size, accumulation=accumulation, rank=rank, processes=processes)
        for rank in range(processes)
    ]
    batches = [[*share] for share in shares]
    steps = -(-count // size)
    assert {len(share) for share in shares} == {steps * accumulation} == {*map(len, batches)}
    assert all(0 < len(batch) <= micro for mine in batches for batch in mine)
    for step in range(steps):
        part = slice(step * accumulation, (step + 1) * accumulation)
        seen = [i for mine in batches for batch in mine[part] for i in batch if i >= 0]
        assert sorted(seen) == [*range(step * size, min((step + 1) * size, count))]


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
    """By number of processes: the file of each case."""
    cases = [
        {"base": str(tiny.base), "loss": loss, "head": head, "micro": micro}
        for head, loss, micro in itertools.product(("frozen", "tied", "trainable"), LOSSES, (2,))
    ]

    def made(processes, strategy="ddp"):
        folder = tmp_path_factory.mktemp(f"{processes}")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        environment = {
            **os.environ, "SMMD_BENCH_PROCESSES": str(processes), "OMP_NUM_THREADS": "1",
            "SMMD_BENCH_STRATEGY": strategy,
        }  # fmt: skip
        if processes > 1:
            environment |= {
                "WORLD_SIZE": str(processes), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port
            }  # fmt: skip
        mine = [{**case, "micro": min(case["micro"], 16 // processes)} for case in cases]
        asked = json.dumps({"out": str(folder / "out"), "cases": mine})
        command = [sys.executable, "-m", "tests.training.ranks", asked]
        running = [
            subprocess.Popen(
                command, env={**environment, "RANK": str(rank), "LOCAL_RANK": str(rank)}
                if processes > 1 else environment,
            )
            for rank in range(processes)
        ]  # fmt: skip
        assert [process.wait() for process in running] == [0] * processes
        return [
            torch.load(folder / f"out.{number}.pt", weights_only=True)
            for number in range(len(cases))
        ]

    return cases, made


@pytest.mark.engine
@pytest.mark.slow
def test_gradients_are_those_of_one_process(gradients):
    cases, made = gradients
    alone = made(1)
    for processes, strategy in ((2, "ddp"), (2, "fsdp2"), (4, "fsdp2")):
        for case, one, several in zip(cases, alone, made(processes, strategy), strict=True):
            where = f"{case} in {processes} processes ({strategy})"
            assert several["sharded"] == (strategy == "fsdp2"), where
            assert len(one["steps"]) == len(several["steps"]) == 3, where
            for mine, theirs in zip(one["steps"], several["steps"], strict=True):
                assert mine.keys() == theirs.keys(), where
                largest = max(float(g.abs().max()) for g in mine.values())
                assert largest > 0, where
                off = max(float((mine[n] - theirs[n]).abs().max()) for n in mine)
                assert off <= 1e-6 * largest, where
            for mine, theirs in zip(one["log"], several["log"], strict=True):
                assert mine["tokens"] == theirs["tokens"]
                assert mine["loss"] == pytest.approx(theirs["loss"], rel=1e-6)
                assert mine["cross_entropy"] == pytest.approx(theirs["cross_entropy"], rel=1e-6)
