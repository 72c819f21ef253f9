"""`relative_scale`: lambda * auxiliary over cross-entropy at a uniform guess over V_num."""

import math
from pathlib import Path

import pytest
import torch

from smmd_bench.contracts import NoAuxiliary
from smmd_bench.plugin_system.registry import entries, load_loss

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


def test_every_additive_loss_states_it_for_both_sizes():
    stated = {plugin.name: set(plugin.relative_scale) for plugin in ADDITIVE}
    assert stated.pop("ntil") == {10}  # it sees no number of several digits in one token
    assert set(stated) == {
        "brier",
        "cramer",
        "del",
        "dist2",
        "nl_ntl",
        "ntl",
        "numeric_ce",
        "raft",
        "smmd",
    }
    assert all(sizes == {10, 1000} for sizes in stated.values())


@pytest.mark.parametrize(("plugin", "n"), STATED, ids=lambda x: getattr(x, "name", x))
def test_it_is_what_the_loss_gives(plugin, n):
    assert plugin.relative_scale[n] == pytest.approx(measured(plugin(), n), rel=0.03)


def test_a_replacing_loss_is_as_large_as_cross_entropy():
    assert measured(load_loss("gce"), 10) == pytest.approx(1)


def test_the_documentation_says_the_same():
    text = (Path(__file__).parents[2] / "docs" / "losses.md").read_text(encoding="utf-8")
    rows = {line.split("`")[1]: line for line in text.splitlines() if line.startswith("| `")}
    for plugin in ADDITIVE:
        cells = rows[plugin.name].split("|")[2:]
        for cell, scale in zip(cells, plugin.relative_scale.values(), strict=False):
            assert cell.strip() == f"{scale:g}"
