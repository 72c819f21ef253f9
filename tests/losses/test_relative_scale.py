"""`relative_scale`: lambda * auxiliary over cross-entropy at a uniform guess over V_num."""

import math

import pytest
import torch

from smmd_bench.contracts import NoAuxiliary
from smmd_bench.plugin_system.registry import entries

from .cases import DIGITS, alone, vocabulary

COPIES = 2000  # of each target where there is noise, each with its own
ADDITIVE = [
    entry.plugin
    for entry in entries("losses")
    if entry.origin == "smmd-bench"
    and not entry.plugin().replaces_cross_entropy
    and not isinstance(entry.plugin().bind(vocabulary(DIGITS)), NoAuxiliary)
]
STATED = [(plugin, n) for plugin in ADDITIVE for n in plugin.relative_scale]


def measured(loss, n):
    """The mean over all targets; each is a row of its own, which makes it a number for ntil."""
    bound = loss.bind(vocabulary([float(value) for value in range(n)]))
    target = torch.arange(n).repeat(COPIES if getattr(loss, "noise", 0) else 1)
    logits = torch.zeros(len(target), n, dtype=torch.float64)
    summed, units = bound(alone(logits, target))
    return loss.weight * float(summed) / units / math.log(n)


@pytest.mark.parametrize(("plugin", "n"), STATED, ids=lambda x: getattr(x, "name", x))
def test_it_is_what_the_loss_gives(plugin, n):
    assert plugin.relative_scale[n] == pytest.approx(measured(plugin(), n), rel=0.03)
