"""Where a training step goes on a CPU, and the bound of its matrix products.

    OMP_NUM_THREADS=1 python -m benchmarks.training_bound

Steps of the tool's own Trainer on `builtin/tiny` with batches of the demo's size. The bound is what
their matrix products take alone: each shape in a loop, whose operands stay in the cache.
"""

from __future__ import annotations

import json
import statistics
import time
from collections import Counter

import torch
from torch.profiler import ProfilerActivity, profile

from smmd_bench.overhead.settings import OverheadSettings, find_geometry
from smmd_bench.overhead.worker import train_row
from smmd_bench.training.faster_steps import fast_products

MODEL, LOSS, STEPS = "smmd_bench/models/builtin/tiny", "smmd", 24
PRODUCTS = ("aten::mm", "aten::addmm", "aten::bmm")
PARTS = {
    "attention": ("attention", "softmax"),
    "optimiser": ("foreach", "adam", "lerp", "norm", "sqrt"),
    "copies": (
        "copy",
        "cat",
        "index",
        "gather",
        "scatter",
        "clone",
        "fill",
        "zero",
        "embedding",
    ),
}
"""By words in the names of operations; the rest is elementwise."""


def seconds_of(shapes: list[list[int]], repeats: int = 30) -> float:
    """Of a product of two matrices, or of two batches of them, of these shapes, alone."""
    a, b = (torch.randn(shape) for shape in shapes[:2])
    with fast_products(a, 1):
        then = time.process_time()
        for _ in range(repeats):
            a @ b
    return (time.process_time() - then) / repeats


def main() -> None:
    settings = OverheadSettings(
        geometry="builtin/tiny", config=find_geometry(MODEL).config, losses={LOSS: 1},
        numeric_tokens=10, device="cpu", steps=STEPS, batch_size=64, length=28, method="full",
    )  # fmt: skip
    _, plain = train_row(settings, LOSS, 0, print)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiled:
        train_row(settings, LOSS, 0, print)
    spent, bound = Counter[str](), 0.0
    for event in profiled.key_averages(group_by_input_shape=True):
        own = event.self_cpu_time_total / 1e6
        if event.key in PRODUCTS:
            spent["products"] += own
            bound += event.count * seconds_of(
                [s for s in event.input_shapes if len(s) > 1]
            )
        else:
            words = ((part, word) for part, known in PARTS.items() for word in known)
            spent[
                next((part for part, word in words if word in event.key), "elementwise")
            ] += own
    step = statistics.median(cpu for _, cpu in plain["steps"][STEPS // 4 :])
    found = {"step": step, "bound": bound / STEPS, "ratio": bound / STEPS / step}
    shares = {part: round(own / spent.total(), 3) for part, own in spent.most_common()}
    print(json.dumps({**found, "shares of the profile": shares}, indent=1))


if __name__ == "__main__":
    main()
