"""Time and memory of the loss part: from last hidden states to their gradients.

    OMP_NUM_THREADS=1 python benchmarks/objective.py

Compares, at H=896 (or --hidden), V=151,936 and 512 supervised tokens in float32 on a CPU, with a
frozen and with a trainable head: the harness's cross-entropy with stock transformers'
(`ForCausalLMLoss` over full logits), and each loss with the harness's cross-entropy, at N=10 and
N=1000 with every supervised token numeric, which is the worst case.

Times: CPU seconds of one process on one thread, so that other jobs on the machine disturb less; the
cases of a round in random order, ratios within a round; the median over rounds and its 95% interval
(order statistics).

Memory: a fresh process for each case and repeat. The peak of its resident set during a step (VmHWM,
reset before the step) less its resident set before the loss was made is what the loss adds, its
constants included; the ratio is of W + hidden states + that. A small step goes before, so that the
libraries are loaded. This sees every allocator, and needs Linux.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import statistics
import subprocess
import sys
import time
from typing import Any

import psutil
import torch
from scipy.stats import binom
from torch import Tensor
from torch.nn import functional as F
from transformers.loss.loss_utils import ForCausalLMLoss

import smmd_bench as sb
from smmd_bench.contracts import NumericVocabulary
from smmd_bench.objective.objective import hidden_objective
from smmd_bench.objective.output_head import OutputHead
from smmd_bench.objective.supervised import supervised_targets
from smmd_bench.overhead.worker import peak_bytes, reset_peak

V, T = 151_936, 512
MIB = 2**20
# Budgets of the design: (time, memory).
STOCK = {"frozen": "1.00 / 0.40", "trainable": "1.02 / 0.95"}
ANY_LOSS = "1.02 / 1.02"


class Case:
    """One way to the gradients: `stock`, or `SPEC@N`."""

    def __init__(self, name: str, tokens: int, vocabulary: int) -> None:
        spec, _, size = name.partition("@")
        n = int(size or 10)
        ids = torch.linspace(0, vocabulary - 1, n).long()  # [N]
        self.spec = spec
        if spec != "stock":
            numbers = NumericVocabulary(
                ids, torch.arange(n, dtype=torch.float64), "benchmark"
            )
            self.loss = sb.load_loss(spec).bind(numbers)
        self.labels = ids[
            torch.randint(n, (tokens,), generator=torch.Generator().manual_seed(0))
        ]

    def total(self, hidden: Tensor, weight: Tensor) -> Tensor:
        total: Tensor
        if self.spec == "stock":
            logits = F.linear(hidden, weight)[None]  # [1, T, V]
            total = ForCausalLMLoss(
                logits,
                None,
                weight.shape[0],
                len(self.labels),
                shift_labels=self.labels[None],
            )
            return total
        targets = supervised_targets(self.loss, self.labels[None])
        return hidden_objective(self.loss, hidden, OutputHead(weight), targets).total

    def step(self, hidden: Tensor, weight: Tensor) -> None:
        self.total(hidden, weight).backward()


def tensors(
    trainable: bool, width: int, tokens: int = T, vocabulary: int = V
) -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    hidden = torch.randn(tokens, width).requires_grad_()
    return hidden, (torch.randn(vocabulary, width) * 0.02).requires_grad_(trainable)


def timed(
    names: list[str], trainable: bool, width: int, rounds: int
) -> dict[str, list[float]]:
    hidden, weight = tensors(trainable, width)
    cases = {name: Case(name, T, V) for name in names}
    seconds: dict[str, list[float]] = {name: [] for name in names}
    order = list(names)
    for index in range(rounds + 1):  # the first round warms up
        random.Random(index).shuffle(order)
        for name in order:
            hidden.grad = weight.grad = None
            gc.collect()
            start = time.process_time()
            cases[name].step(hidden, weight)
            if index:
                seconds[name].append(time.process_time() - start)
    return seconds


def added_memory(name: str, trainable: bool, width: int) -> float:
    """MiB that a loss and its step add at the peak; runs in a process of its own."""
    Case(name, 4, 1000).step(*tensors(trainable, width, 4, 1000))
    hidden, weight = tensors(trainable, width)
    reset_peak("cpu")
    before = psutil.Process().memory_info().rss
    case = Case(name, T, V)
    reset_peak("cpu")  # what making the loss took and gave back is not part of a step
    case.step(hidden, weight)
    peak = peak_bytes("cpu")
    assert peak is not None, "this needs Linux"
    return (peak - before) / MIB


def measured_memory(
    name: str, trainable: bool, width: int, repeats: int
) -> list[float]:
    command = [
        sys.executable,
        __file__,
        "--memory-of",
        name,
        *(["--trainable"] * trainable),
    ]
    command += ["--hidden", str(width)]
    return [
        float(
            json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        )
        for _ in range(repeats)
    ]


def median_interval(values: list[float]) -> tuple[float, float, float]:
    """Median, and the order statistics that cover it with at least 95%."""
    ordered = sorted(values)
    k = int(binom.ppf(0.025, len(ordered), 0.5))
    return statistics.median(ordered), ordered[max(k - 1, 0)], ordered[min(-k, -1)]


def compare(head: str, pairs: list[tuple[str, str, str]], args: Any) -> None:
    names = sorted({name for pair in pairs for name in pair[:2]})
    common = head == "trainable", args.hidden
    seconds = timed(names, *common, args.rounds)
    memory = {name: measured_memory(name, *common, args.repeats) for name in names}
    base = (V + T) * args.hidden * 4 / MIB
    for name in names:
        print(
            f"| {head} | {name} | | {statistics.median(seconds[name]):.2f} s | "
            f"+{statistics.median(memory[name]):.0f} MiB |",
            flush=True,
        )
    for name, against, budget in pairs:
        ratios = [a / b for a, b in zip(seconds[name], seconds[against], strict=True)]
        middle, low, high = median_interval(ratios)
        peaks = [
            (base + a) / (base + b)
            for a, b in zip(memory[name], memory[against], strict=True)
        ]
        print(
            f"| {head} | {name} : {against} | {budget} | "
            f"{middle:.3f} [{low:.3f}, {high:.3f}] | {statistics.median(peaks):.3f} "
            f"[{min(peaks):.3f}, {max(peaks):.3f}] |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument(
        "--repeats", type=int, default=3, help="fresh processes a memory case"
    )
    parser.add_argument("--hidden", type=int, default=896, help="H")
    parser.add_argument("--heads", nargs="+", default=["frozen", "trainable"])
    parser.add_argument(
        "--losses", nargs="*", default=["gce", "ntl", "ntil", "dist2", "smmd"]
    )
    parser.add_argument("--sizes", nargs="+", type=int, default=[10, 1000], help="N")
    parser.add_argument("--memory-of", help=argparse.SUPPRESS)
    parser.add_argument("--trainable", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    torch.set_num_threads(1)
    if args.memory_of:
        print(json.dumps(added_memory(args.memory_of, args.trainable, args.hidden)))
        return
    print(
        "| head | case | budget: time / memory | time | memory |\n|---|---|---|---|---|"
    )
    for head in args.heads:
        compare(head, [("ce@10", "stock", STOCK[head])], args)
        for n in args.sizes if args.losses else ():
            pairs = [(f"{loss}@{n}", f"ce@{n}", ANY_LOSS) for loss in args.losses]
            compare(head, pairs, args)


if __name__ == "__main__":
    main()
