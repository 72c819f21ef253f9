"""What a loss costs beside cross-entropy: a quick look, never a verdict."""

from __future__ import annotations

import statistics
import time

import torch

from ..contracts import Loss
from ..errors import CellSkippedError
from ..objective.objective import hidden_objective, supervised_targets
from ..objective.output_head import OutputHead
from .loss_cases import integers

_TOKENS, _HIDDEN, _VOCABULARY, _PAIRS = 16, 512, 65_536, 6


def cost(loss: Loss) -> str:
    """The median ratio of CPU times to cross-entropy, each at N = 10 and N = 1000."""
    found = []
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # threads that wait for each other cost time, too
    try:
        for n in (10, 1000):
            try:
                found.append(f"{_ratio(loss, n):.2f} at N = {n:,}")
            except CellSkippedError:
                found.append(f"none at N = {n:,}, where it cannot apply")
    finally:
        torch.set_num_threads(threads)
    return (
        f"CPU time of the loss part, cross-entropy being 1: {'; '.join(found)} (a quick look at "
        f"V = {_VOCABULARY:,}, no check; `smmd-bench overhead` measures it)"
    )


def _ratio(loss: Loss, n: int) -> float:
    """The two take turns, so that what disturbs the machine disturbs both."""
    generator = torch.Generator().manual_seed(0)
    vocabulary = integers(n)
    bound = loss.bind(vocabulary)
    hidden = torch.randn(_TOKENS, _HIDDEN, generator=generator).requires_grad_()
    rows = torch.randn(1024, _HIDDEN, generator=generator) / _HIDDEN**0.5
    head = OutputHead(rows.repeat(_VOCABULARY // 1024, 1))
    labels = vocabulary.token_ids[torch.randint(n, (4, _TOKENS // 4), generator=generator)]
    targets = supervised_targets(labels)
    ratios = []
    for pair in range(_PAIRS):
        seconds = {}
        for name in ("ce", "loss") if pair % 2 else ("loss", "ce"):
            start = time.process_time()
            out = hidden_objective(bound if name == "loss" else None, hidden, head, targets)
            out.total.backward()
            seconds[name] = time.process_time() - start
        if pair:
            ratios.append(seconds["loss"] / seconds["ce"])
    return statistics.median(ratios)
