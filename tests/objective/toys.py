"""Small losses and batches to put through the objective."""

from dataclasses import dataclass
from functools import partial

import torch
from torch.nn import functional as F

from smmd_bench.contracts import NumericLoss, NumericTargets, NumericVocabulary
from smmd_bench.plugin_system.registry import load_loss

V, H, T = 61, 8, 24
IDS = [7, 3, 50, 11, 29, 60, 0, 33, 18, 42]  # the vocabulary ids of the values 0..9


def vocabulary():
    return NumericVocabulary(
        torch.tensor(IDS), torch.arange(10, dtype=torch.float64), "test"
    )


@dataclass(frozen=True)
class Toy:
    """A loss of one module."""

    name = "toy"
    version = 1
    module: type[NumericLoss]
    replaces_cross_entropy: bool = False
    weight: float = 1.0

    def bind(self, vocabulary):
        return self.module(self, vocabulary)


class SoftLabels(NumericLoss):
    """log Z - sum_i q_i x_i, q a Gaussian about the target, in place of the cross-entropy."""

    def __init__(self, loss, vocabulary):
        super().__init__(loss, vocabulary)
        v = vocabulary.values
        self.constant("q", (-((v[:, None] - v) ** 2)).softmax(-1))

    def forward(self, numeric):
        q = self.q.to(numeric.logits.dtype)[numeric.target]
        expected_logit = (q * numeric.logits).sum(-1)
        return (numeric.log_partition - expected_logit).sum(), len(numeric.target)


class SeparableSoftLabels(SoftLabels):
    separable = True


class PerRow(NumericLoss):
    """For each row that holds numbers, the square of its summed expected value and log Z."""

    def units(self, places):
        return int(places.row.unique().numel())

    def forward(self, numeric):
        values = torch.arange(10, dtype=numeric.logits.dtype) / 2
        expected = numeric.logits.softmax(-1) @ values + 0.1 * numeric.log_partition
        rows, index = numeric.row.unique(return_inverse=True)
        sums = expected.new_zeros(len(rows)).index_add(0, index, expected)
        return (sums**2).sum(), len(rows)


OF_THE_PACKAGE = (
    "ce", "ce[smoothing=0.3]", "ntl", "ntl[reweigh=true]", "ntil", "gce", "gce[support=vocabulary]",
    "gce[emd=0.5,gate=0.3]", "dist2", "smmd", "numeric_ce", "numeric_ce[support=numeric]",
    "numeric_dft", "brier", "cramer", "oll", "del", "nl_ntl", "nl_ntl[reweigh=true]", "raft",
    "raft[support=vocabulary,add_cross_entropy=false]",
)  # fmt: skip
LOSSES = {
    **{spec: partial(load_loss, spec) for spec in OF_THE_PACKAGE},
    "soft-labels": lambda: Toy(SoftLabels, replaces_cross_entropy=True),
    "separable": lambda: Toy(SeparableSoftLabels, replaces_cross_entropy=True),
    "per-row": lambda: Toy(PerRow, weight=0.3),
}


def bind(name):
    return LOSSES[name]().bind(vocabulary())


def random_labels(rows=3, numeric=0.4, ignored=0.2):
    """[rows, T / rows], numeric and ignored ones among them."""
    generator = torch.Generator().manual_seed(0)
    shape = (rows, T // rows)
    labels = torch.randint(V, shape, generator=generator)
    numbers = torch.tensor(IDS)[torch.randint(10, shape, generator=generator)]
    labels = numbers.where(torch.rand(shape, generator=generator) < numeric, labels)
    return labels.masked_fill(torch.rand(shape, generator=generator) < ignored, -100)


def random_hidden(labels, dtype=torch.float64):
    """Hidden states [B, T, H] and a weight [V, H], both leaves with gradients."""
    generator = torch.Generator().manual_seed(1)
    hidden = torch.randn(*labels.shape, H, generator=generator, dtype=torch.float64)
    weight = torch.randn(V, H, generator=generator, dtype=torch.float64)
    return hidden.to(dtype).requires_grad_(), weight.to(dtype).requires_grad_()


def random_batch(dtype=torch.float64, **shares):
    """Labels, hidden states and a weight."""
    labels = random_labels(**shares)
    return labels, *random_hidden(labels, dtype=dtype)


def numeric_cells(labels):
    """(row, position) of the numeric labels, in reading order."""
    cells = map(tuple, (labels != -100).nonzero().tolist())
    return [cell for cell in cells if int(labels[cell]) in IDS]


def literal_places(labels):
    """(number, place) of the numeric labels: runs of single digits, token by token."""
    runs = []
    for row, position in numeric_cells(labels):
        if not runs or runs[-1][-1] != (row, position - 1):
            runs.append([])
        runs[-1].append((row, position))

    places = []
    for number, run in enumerate(runs):
        places += [(number, 10.0**exponent) for exponent in reversed(range(len(run)))]
    return places


def literal_targets(logits, labels):
    """What a loss reads of the numeric labels."""
    rows, positions = torch.tensor(numeric_cells(labels)).T
    numbers, places = zip(*literal_places(labels), strict=True)
    at_numbers = logits[rows, positions]
    tokens = labels[rows, positions].tolist()
    return NumericTargets(
        logits=at_numbers[:, IDS],
        log_partition=at_numbers.logsumexp(-1),
        target=torch.tensor([IDS.index(token) for token in tokens]),
        row=rows,
        position=positions,
        key=rows,
        number=torch.tensor(numbers),
        place=torch.tensor(places, dtype=torch.float64),
        whole=torch.ones(len(rows), dtype=torch.bool),
    )


def literal(loss, logits, labels):
    """(total, cross-entropy, auxiliary), by the definition, token by token."""
    cross_entropy = trained = 0.0
    smoothing = loss.label_smoothing
    supervised = (labels != -100).nonzero().tolist()
    for row, position in supervised:
        x = logits[row, position]
        y = labels[row, position]
        of_token = F.cross_entropy(x, y)
        cross_entropy = cross_entropy + of_token
        trained = trained + F.cross_entropy(x, y, label_smoothing=smoothing)
        if int(y) in IDS and loss.replaces_cross_entropy:
            trained = trained - of_token

    tokens = len(supervised)
    summed, units = loss(literal_targets(logits, labels))
    share = summed / tokens
    if not loss.replaces_cross_entropy:
        share = loss.weight * summed / max(units, 1)
    return trained / tokens + share, cross_entropy / tokens, summed / max(units, 1)
