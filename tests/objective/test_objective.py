"""The objective, over logits and over hidden states, against its definition."""

import logging
from contextlib import nullcontext

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
    assert_same(gradients(out.total, hidden, weight), gradients(expected[0], hidden, weight))
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
    whole = entry(loss, hidden, weight, labels)
    counts = {"num_tokens": whole.tokens, "num_units": torch.tensor(whole.units)}
    halves = [
        entry(loss, hidden[part], weight, labels[part], keys=torch.arange(4)[part], **counts)
        for part in (slice(0, 1), slice(1, 4))
    ]
    total = sum(half.total for half in halves)
    assert_same(gradients(total, hidden, weight), gradients(whole.total, hidden, weight))
    for field in ("total", "cross_entropy_sum", "auxiliary_sum", "cross_entropy", "auxiliary"):
        assert_same((sum(getattr(half, field) for half in halves),), (getattr(whole, field),))
    assert sum(half.tokens for half in halves) == whole.tokens
    assert sum(half.units for half in halves) == whole.units


@each_loss
@both_entries
def test_padding_and_the_order_of_rows_change_nothing(entry, name):
    labels, hidden, weight = toys.random_batch(rows=6)
    loss = toys.bind(name)
    expected = entry(loss, hidden, weight, labels).total
    padding, width = torch.full_like(hidden, 1e4), labels.shape[1]
    for wide, sides in (([padding, hidden], (width, 0)), ([hidden, padding], (0, width))):
        padded = F.pad(labels, sides, value=-100)
        assert_same((entry(loss, torch.cat(wide, 1), weight, padded).total,), (expected,))
    order = torch.randperm(6, generator=torch.Generator().manual_seed(3))
    assert_same((entry(loss, hidden[order], weight, labels[order], keys=order).total,), (expected,))


@each_loss
@both_entries
def test_without_a_numeric_target_the_auxiliary_is_a_zero(entry, name):
    labels = toys.random_labels(numeric=0)
    labels = labels.masked_fill(torch.isin(labels, torch.tensor(toys.IDS)), -100)
    hidden, weight = toys.random_hidden(labels)
    out = entry(toys.bind(name), hidden, weight, labels)
    assert (out.auxiliary.item(), out.units) == (0.0, 0)
    logits, smoothing = (hidden @ weight.T).flatten(0, 1), toys.bind(name).label_smoothing
    plain = F.cross_entropy(logits, labels.flatten(), label_smoothing=smoothing)
    assert_same((out.total,), (plain,))
    assert_same(gradients(out.total, hidden, weight), gradients(plain, hidden, weight))
    if entry is of_logits:
        assert not gradients(out.auxiliary, hidden)[0].any()  # which has a gradient path


@each_loss
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_narrow_logits_are_summed_in_float32(name, dtype):
    labels = toys.random_labels()
    torch.manual_seed(0)
    logits = (3 * torch.randn(*labels.shape, toys.V)).to(dtype).requires_grad_()
    loss = toys.bind(name)
    out = numeric_objective(loss, logits, labels)
    expected = toys.literal(loss, logits.detach().double(), labels)
    wanted = [torch.as_tensor(x, dtype=torch.float32) for x in expected]
    assert out.total.dtype == torch.float32
    assert_same(parts(out), wanted, rtol=1e-5, atol=1e-6)
    assert gradients(out.total, logits)[0].dtype == dtype


@each_loss
def test_units_are_known_before_the_forward_pass(name):
    labels, hidden, weight = toys.random_batch()
    out = of_logits(toys.bind(name), hidden, weight, labels)
    assert count_units(toys.bind(name), labels) == out.units
    numeric_at = torch.isin(labels, torch.tensor(toys.IDS))
    numeric_rows, numeric = int(numeric_at.any(1).sum()), int(numeric_at.sum())
    numbers = int((numeric_at & ~F.pad(numeric_at, (1, 0))[:, :-1]).sum())
    of_numbers = dict.fromkeys(("ntil", "nl_ntl", "raft"), numbers)
    few = {"ce": 0, "per-row": numeric_rows, **of_numbers}
    assert out.units == few.get(name.partition("[")[0], numeric)
    assert count_units(None, labels) == 0


@pytest.mark.parametrize("options", [{"scale": 0.25}, {"bias": True, "soft_cap": 5.0}])
@each_loss
def test_a_head_that_is_more_than_a_weight_takes_the_plain_path_and_says_so(name, options, caplog):
    labels, hidden, weight = toys.random_batch()
    bias = (
        torch.randn(toys.V, dtype=torch.float64, requires_grad=True) if "bias" in options else None
    )
    head = OutputHead(weight, bias, options.get("scale", 1.0), options.get("soft_cap"))
    logits = F.linear(hidden, weight, bias) * options.get("scale", 1.0)
    if cap := options.get("soft_cap"):
        logits = cap * torch.tanh(logits / cap)
    loss = toys.bind(name)
    targets = supervised_targets(loss, labels)
    objective.say_once.cache_clear()
    with caplog.at_level(logging.WARNING, logger="smmd_bench"):
        out = hidden_objective(loss, hidden[targets.row, targets.position], head, targets)
    assert "bias, scale or soft-cap" in caplog.text
    expected = toys.literal(loss, logits, labels)
    assert_same(parts(out), expected)
    leaves = [hidden, weight, *([bias] if bias is not None else [])]
    assert_same(gradients(out.total, *leaves), gradients(expected[0], *leaves))


def test_mistakes_of_the_caller_are_errors():
    logits, labels = torch.zeros(1, 1, toys.V), torch.tensor([[toys.IDS[0]]])
    with pytest.raises(ValueError, match="are not aligned"):
        numeric_objective(None, torch.zeros(2, 5, toys.V), torch.zeros(2, 4, dtype=torch.long))
    for name in ("smmd", "gce", "ce"):
        for one in ("num_tokens", "num_units"):
            with pytest.raises(ValueError, match=r"without num_.* both .* whole optimiser step"):
                numeric_objective(toys.bind(name), logits, labels, **{one: 4})
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
        masks = name.lstrip("_") in ("index", "index_put", "index_put_", "index_put_impl_") and any(
            index is not None and index.dtype == torch.bool for index in args[1]
        )
        self.count += masks or name in self.NAMES
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", toys.OF_THE_PACKAGE)
def test_a_gpu_is_waited_for_once_at_most_and_only_by_a_trainable_head(name):
    labels, hidden, weight = toys.random_batch(ignored=0)
    loss, chunk = toys.bind(name), 2 * toys.V
    targets = supervised_targets(loss, labels)
    hidden = hidden[targets.row, targets.position].detach().requires_grad_()
    for trainable in (False, True):
        head = OutputHead(weight.requires_grad_(trainable))
        counts = torch.tensor(24), torch.tensor(9)
        for _ in range(2):  # constants of a dtype are made at the first step
            with Synchronisations() as seen:
                out = hidden_objective(loss, hidden, head, targets.at_step(0, 1), *counts, chunk)
                out.total.backward()
        assert seen.count <= trainable
    with Synchronisations() as seen:
        supervised_targets(loss, labels)
    assert seen.count > 2  # what is counted


@pytest.mark.parametrize("name", toys.OF_THE_PACKAGE)
def test_nothing_is_left_on_another_device(name, monkeypatch):
    """The device `meta` has shapes alone: a value that the host asks for is an error there."""
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda _: False)  # which meta has not
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())
    labels, _, weight = toys.random_batch(dtype=torch.float32)
    loss = toys.bind(name)
    targets = supervised_targets(loss, labels).to("meta").at_step(0, 1)
    states = torch.empty(len(targets), toys.H, device="meta").requires_grad_()
    counts = torch.tensor(24, device="meta"), torch.tensor(9, device="meta")
    out = hidden_objective(loss, states, OutputHead(weight.detach().to("meta")), targets, *counts)
    out.total.backward()
    assert states.grad.shape == states.shape
