"""What a training step does besides its forward and backward pass: what a GPU waits for.

    OMP_NUM_THREADS=1 python -m benchmarks.host_work

Trains a Qwen2 of 28 layers whose widths are tiny, with LoRA in bfloat16 on one thread of a CPU, so
that hardly any time is arithmetic. Prints milliseconds of CPU a step outside of the two passes
(median of all steps but the first quarter, and of the runs the lowest and the highest) in the stock
Trainer and in that of the train stage, by turns.
"""

import statistics
import time
from collections import defaultdict
from unittest.mock import patch

import torch
from accelerate import Accelerator
from transformers import Trainer

from smmd_bench.overhead.settings import CE, STOCK, OverheadSettings
from smmd_bench.overhead.worker import train_row
from smmd_bench.plugin_system.registry import load_loss
from smmd_bench.training.trainer import ObjectiveTrainer

REPEATS, STEPS = 3, 60
SHAPE = {
    "model_type": "qwen2",
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 28,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "vocab_size": 1000,
}


def measure(settings, row, repeat):
    """Median milliseconds of CPU a step outside of its passes."""
    in_passes = [0.0]
    outside = []

    def timed(function):
        def call(*arguments, **options):
            began = time.process_time()
            try:
                return function(*arguments, **options)
            finally:
                in_passes[0] += time.process_time() - began

        return call

    last = [0.0]

    def report(done, total):
        now = time.process_time()
        outside.append(1000 * (now - last[0] - in_passes[0]))
        last[0], in_passes[0] = now, 0.0

    trainer = Trainer if row == STOCK else ObjectiveTrainer
    with (
        patch.object(trainer, "compute_loss", timed(trainer.compute_loss)),
        patch.object(Accelerator, "backward", timed(Accelerator.backward)),
    ):
        train_row(settings, row, repeat, report)
    return statistics.median(outside[STEPS // 4 :])


def main():
    torch.set_num_threads(1)
    settings = OverheadSettings(
        geometry="28 layers", config=SHAPE, losses={CE: load_loss(CE).version},
        numeric_tokens=10, device="cpu", steps=STEPS, batch_size=4, length=32,
        dtype="bfloat16",
    )  # fmt: skip
    times = defaultdict(list)
    for repeat in range(REPEATS):
        for row in settings.rows:
            times[row].append(measure(settings, row, repeat))
    for row, values in times.items():
        middle = statistics.median(values)
        print(f"{row}: {middle:.1f} ms [{min(values):.1f}, {max(values):.1f}]")


if __name__ == "__main__":
    main()
