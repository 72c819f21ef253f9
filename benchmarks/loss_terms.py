"""What a loss alone adds to a step: its numeric logits, its value and its gradient.

    OMP_NUM_THREADS=1 python benchmarks/loss_terms.py

`benchmarks/objective.py` takes the ratio of two whole loss parts of seconds each, and a loss of
milliseconds drowns in their noise. Here the term is timed by itself, as the objective evaluates it
(`NumericShare`), and set against the time of the cross-entropy over the same hidden states: CPU
seconds of one process on one thread, 512 supervised tokens that are all numeric, V = 151,936,
float32. For a trainable head the gradient's rows V_num are counted, too.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor

import smmd_bench as sb
from smmd_bench.contracts import NumericVocabulary
from smmd_bench.objective.numeric_term import NumericShare, NumericTerm
from smmd_bench.objective.objective import hidden_objective
from smmd_bench.objective.output_head import OutputHead
from smmd_bench.objective.supervised import numeric_positions, supervised_targets

V, T = 151_936, 512


def median_seconds(run: Callable[[], None], rounds: int) -> float:
    """Median CPU seconds of a call, after one that warms up."""
    seconds = []
    for _ in range(rounds + 1):
        start = time.process_time()
        run()
        seconds.append(time.process_time() - start)
    return statistics.median(seconds[1:])


def term_seconds(spec: str, n: int, hidden: Tensor, weight: Tensor, rounds: int) -> float:
    """The term's part of a step."""
    ids = torch.linspace(0, V - 1, n).long()  # [N]
    loss = sb.load_loss(spec).bind(NumericVocabulary(ids, torch.arange(n).double(), "benchmark"))
    generator = torch.Generator().manual_seed(0)
    target = torch.randint(n, (T,), generator=generator)
    target[::2] = torch.randint(10, (T // 2,), generator=generator)  # NTIL has digits at N = 1000
    targets = supervised_targets(ids[target][None])
    positions = numeric_positions(loss, targets)

    def value(logits: Tensor, log_partition: Tensor, part: slice) -> Tensor:
        total, _ = loss(positions.targets(logits, log_partition, part))
        return total / T

    term = NumericTerm(torch.arange(T), ids, value, loss.separable)
    gradient = torch.zeros_like(weight) if weight.requires_grad else None

    def run() -> None:
        share = NumericShare(term, hidden, weight.detach(), torch.ones(T))
        share.evaluate(slice(None), torch.ones(T), differentiate=True)
        torch.zeros_like(hidden).index_add_(0, term.rows, share.logits @ share.weight)
        if gradient is not None:
            gradient.index_add_(0, ids, share.logits.T @ hidden)

    return median_seconds(run, rounds)


def cross_entropy_seconds(hidden: Tensor, weight: Tensor, rounds: int) -> float:
    """The loss part of CE, to the gradients."""
    targets = supervised_targets(torch.randint(V, (1, T)))
    leaf = hidden.clone().requires_grad_()

    def run() -> None:
        weight.grad = None
        hidden_objective(None, leaf, OutputHead(weight), targets).total.backward()

    return median_seconds(run, rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--hidden", nargs="+", type=int, default=[896, 1536], help="H")
    parser.add_argument("--losses", nargs="+", default=["gce", "ntl", "ntil", "dist2", "smmd"])
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    print("| H | head | CE | " + " | ".join(args.losses) + " |")
    print("|---|---|---|" + "---|" * len(args.losses))
    for width in args.hidden:
        hidden = torch.randn(T, width)
        for trainable in (False, True):
            weight = (torch.randn(V, width) * 0.02).requires_grad_(trainable)
            whole = cross_entropy_seconds(hidden, weight, 5)
            head = "trainable" if trainable else "frozen"
            for n in (10, 1000):
                found = [term_seconds(s, n, hidden, weight, args.rounds) for s in args.losses]
                cells = [f"{1e3 * x:.1f} ms, {x / whole:.2%}" for x in found]
                print(f"| {width} | {head}, N={n} | {whole:.2f} s | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
