"""The ways into the objective, and how its tensors are compared."""

import pytest
import torch

from smmd_bench import numeric_objective
from smmd_bench.objective.objective import hidden_objective
from smmd_bench.objective.output_head import OutputHead
from smmd_bench.objective.supervised import supervised_targets

from .toys import LOSSES

each_loss = pytest.mark.parametrize("name", LOSSES)
trainable_or_not = pytest.mark.parametrize("trainable", [False, True])


def of_logits(loss, hidden, weight, labels, **counts):
    return numeric_objective(loss, hidden @ weight.T, labels, **counts)


def of_hidden(loss, hidden, weight, labels, keys=None, **options):
    """options: counts, and `chunk_elements`."""
    targets = supervised_targets(loss, labels, keys)
    states = hidden[targets.row, targets.position]
    return hidden_objective(loss, states, OutputHead(weight), targets, **options)


both_entries = pytest.mark.parametrize("entry", [of_logits, of_hidden])


def parts(out):
    return out.total, out.cross_entropy, out.auxiliary


def gradients(total, *leaves):
    return torch.autograd.grad(total, leaves, retain_graph=True)


def assert_same(tensors, expected, rtol=1e-11, atol=1e-12):
    for a, b in zip(tensors, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=rtol, atol=atol)
