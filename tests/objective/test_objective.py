"""The objective, over logits and over hidden states, against its definition."""

import logging
from contextlib import nullcontext
from dataclasses import fields

import pytest
import torch
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from smmd_bench import numeric_objective
from smmd_bench.objective import objective
from smmd_bench.objective.objective import hidden_objective
from smmd_bench.objective.output_head import OutputHead
from smmd_bench.objective.supervised import count_units, supervised_targets
from smmd_bench.plugin_system.registry import load_loss

from . import toys
from .entries import assert_same, both_entries, each_loss, gradients, of_logits, parts


@pytest.mark.parametrize("shares", [{}, {"numeric": 1, "ignored": 0}])
@each_loss
@both_entries
def test_is_its_definition(entry, name, shares):
    labels, hidden, weight = toys.random_batch(**shares)
    loss = toys.bind(name)
    out = entry(loss, hidden, weight, labels)
    expected = toys.literal(loss, hidden @ weight.T, labels)

    assert_same(parts(out), expected)
    assert_same(
        gradients(out.total, hidden, weight), gradients(expected[0], hidden, weight)
    )
    assert out.tokens == int((labels != -100).sum())

    with torch.no_grad():
        values = entry(loss, hidden, weight, labels)
    assert not values.total.requires_grad
    assert_same(parts(values), expected)


@each_loss
@both_entries
def test_micro_batches_that_share_the_counts_add_up(entry, name):
    labels, hidden, weight = toys.random_batch(rows=4)
    loss = toys.bind(name)
    step = entry(loss, hidden, weight, labels)
    units = torch.tensor(step.units)
    counts = {"num_tokens": step.tokens, "num_units": units}
    keys = torch.arange(4)

    halves = []
    for rows in (slice(0, 1), slice(1, 4)):
        half = hidden[rows], weight, labels[rows]
        counts["keys"] = keys[rows]
        halves.append(entry(loss, *half, **counts))

    for field in fields(step):
        expected = getattr(step, field.name)
        added = sum(getattr(half, field.name) for half in halves)
        assert_same((added,), (expected,))

    leaves = hidden, weight
    total = sum(half.total for half in halves)
    assert_same(gradients(total, *leaves), gradients(step.total, *leaves))


@each_loss
@both_entries
def test_padding_and_the_order_of_rows_change_nothing(entry, name):
    labels, hidden, weight = toys.random_batch(rows=6)
    loss = toys.bind(name)
    expected = entry(loss, hidden, weight, labels)

    width = labels.shape[1]
    for sides in ((width, 0), (0, width)):
        wide_labels = F.pad(labels, sides, value=-100)
        wide_hidden = F.pad(hidden, (0, 0, *sides), value=1e4)
        padded = entry(loss, wide_hidden, weight, wide_labels)
        assert_same(parts(padded), parts(expected))

    order = torch.tensor([4, 1, 5, 0, 3, 2])
    labels = labels[order]
    hidden = hidden[order]
    shuffled = entry(loss, hidden, weight, labels, keys=order)
    assert_same(parts(shuffled), parts(expected))


@each_loss
@both_entries
def test_without_a_numeric_target_the_auxiliary_is_a_zero(entry, name):
    labels = toys.random_labels(numeric=0)
    labels = labels.masked_fill(torch.isin(labels, torch.tensor(toys.IDS)), -100)
    hidden, weight = toys.random_hidden(labels)
    loss = toys.bind(name)
    out = entry(loss, hidden, weight, labels)

    assert out.auxiliary.item() == 0.0
    assert out.units == 0

    logits = (hidden @ weight.T).flatten(0, 1)
    smoothing = loss.label_smoothing
    plain = F.cross_entropy(logits, labels.flatten(), label_smoothing=smoothing)
    assert_same((out.total,), (plain,))
    assert_same(gradients(out.total, hidden, weight), gradients(plain, hidden, weight))

    if entry is of_logits:
        assert not gradients(out.auxiliary, hidden)[
            0
        ].any()  # which has a gradient path


@each_loss
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_narrow_logits_are_summed_in_float32(name, dtype):
    labels = toys.random_labels()
    torch.manual_seed(0)
    logits = 3 * torch.randn(*labels.shape, toys.V)
    logits = logits.to(dtype).requires_grad_()
    loss = toys.bind(name)
    out = numeric_objective(loss, logits, labels)
    exact_logits = logits.detach().double()
    exact = toys.literal(loss, exact_logits, labels)
    expected = torch.tensor(exact, dtype=torch.float32)

    assert out.total.dtype == torch.float32
    assert_same(parts(out), expected, rtol=1e-5, atol=1e-6)
    (gradient,) = gradients(out.total, logits)
    assert gradient.dtype == dtype


@each_loss
def test_units_are_known_before_the_forward_pass(name):
    labels, hidden, weight = toys.random_batch()
    loss = toys.bind(name)
    out = of_logits(loss, hidden, weight, labels)

    assert count_units(loss, labels) == out.units
    assert count_units(None, labels) == 0

    cells = toys.numeric_cells(labels)
    rows = {row for row, _ in cells}
    numbers = {number for number, _ in toys.literal_places(labels)}
    other_units = {
        "ce": [],
        "per-row": rows,
        "ntil": numbers,
        "nl_ntl": numbers,
        "raft": numbers,
    }
    units = other_units.get(name.partition("[")[0], cells)
    assert out.units == len(units)


BIAS = torch.randn(toys.V, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("options", [{"scale": 0.25}, {"bias": BIAS, "soft_cap": 5.0}])
@each_loss
def test_a_head_that_is_more_than_a_weight_takes_the_plain_path_and_says_so(
    name, options, caplog
):
    labels, hidden, weight = toys.random_batch()
    leaves = [hidden, weight]
    if "bias" in options:
        leaves.append(BIAS)
    head = OutputHead(weight, **options)
    logits = F.linear(hidden, weight, head.bias) * head.scale
    if head.soft_cap:
        logits = head.soft_cap * torch.tanh(logits / head.soft_cap)
    loss = toys.bind(name)
    targets = supervised_targets(loss, labels)
    objective.say_once.cache_clear()
    with caplog.at_level(logging.WARNING, logger="smmd_bench"):
        out = hidden_objective(
            loss, hidden[targets.row, targets.position], head, targets
        )

    assert "bias, scale or soft-cap" in caplog.text

    expected = toys.literal(loss, logits, labels)
    assert_same(parts(out), expected)
    assert_same(gradients(out.total, *leaves), gradients(expected[0], *leaves))


def test_mistakes_of_the_caller_are_errors():
    logits, labels = torch.zeros(1, 1, toys.V), torch.tensor([[toys.IDS[0]]])
    with pytest.raises(ValueError, match="are not aligned"):
        numeric_objective(
            None, torch.zeros(2, 5, toys.V), torch.zeros(2, 4, dtype=torch.long)
        )
    for name in ("smmd", "gce", "ce"):
        for count in ("num_tokens", "num_units"):
            with pytest.raises(
                ValueError, match=r"without num_.* both .* whole optimiser step"
            ):
                numeric_objective(toys.bind(name), logits, labels, **{count: 4})

    with pytest.raises(ValueError, match="is 0, but this batch alone has 1"):
        numeric_objective(toys.bind("smmd"), logits, labels, num_tokens=4, num_units=0)
    with pytest.raises(TypeError, match=r"pass loss\.bind"):
        numeric_objective(load_loss("smmd"), logits, labels)


class Synchronisations(TorchDispatchMode):
    """Counts the operations for which a GPU is waited."""

    NAMES = ("_local_scalar_dense", "nonzero", "unique_consecutive", "masked_select", "bincount",
             "is_nonzero", "equal", "_unique2", "repeat_interleave")  # fmt: skip
    count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.name().removeprefix("aten::").partition(".")[0]
        # An index that is a mask has as many elements as it has ones.
        if name.lstrip("_") in ("index", "index_put", "index_put_", "index_put_impl_"):
            self.count += any(
                index is not None and index.dtype == torch.bool for index in args[1]
            )
        self.count += name in self.NAMES
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", toys.OF_THE_PACKAGE)
def test_a_gpu_is_waited_for_once_at_most_and_only_by_a_trainable_head(name):
    labels, hidden, weight = toys.random_batch(ignored=0)
    loss, chunk = toys.bind(name), 2 * toys.V
    targets = supervised_targets(loss, labels)
    hidden = hidden[targets.row, targets.position].detach().requires_grad_()

    counts = torch.tensor(24), torch.tensor(9)
    for trainable in (False, True):
        head = OutputHead(weight.requires_grad_(trainable))
        for _ in range(2):  # constants of a dtype are made at the first step
            with Synchronisations() as seen:
                at_step = targets.at_step(0, 1)
                out = hidden_objective(loss, hidden, head, at_step, *counts, chunk)
                out.total.backward()
        assert seen.count <= trainable

    with Synchronisations() as seen:
        supervised_targets(loss, labels)
    assert seen.count > 2  # what is counted


@pytest.mark.parametrize("name", toys.OF_THE_PACKAGE)
def test_nothing_is_left_on_another_device(name, monkeypatch):
    """The device `meta` has shapes alone: a value that the host asks for is an error there."""
    # which meta has not
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda _: False)
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())
    labels, _, weight = toys.random_batch(dtype=torch.float32)
    loss = toys.bind(name)
    targets = supervised_targets(loss, labels).to("meta").at_step(0, 1)
    states = torch.empty(len(targets), toys.H, device="meta").requires_grad_()
    head = OutputHead(weight.detach().to("meta"))
    tokens = torch.tensor(24, device="meta")
    units = torch.tensor(9, device="meta")
    out = hidden_objective(loss, states, head, targets, tokens, units)
    out.total.backward()

    assert states.grad.shape == states.shape
