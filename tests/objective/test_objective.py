"""The objective, over logits and over hidden states, against its definition."""

import logging

import pytest
import torch
from torch.nn import functional as F

from smmd_bench import numeric_objective
from smmd_bench.contracts import NumericLoss
from smmd_bench.objective import objective
from smmd_bench.objective.objective import (
    count_units,
    hidden_objective,
    logits_objective,
    supervised_targets,
)
from smmd_bench.objective.output_head import OutputHead
from smmd_bench.plugin_system.registry import load_loss

from ..training.toys import IDS, LOSSES, H, V, bind, literal, random_hidden, random_labels

each_loss = pytest.mark.parametrize("name", LOSSES)


def of_logits(loss, hidden, weight, labels, **counts):
    return numeric_objective(loss, hidden @ weight.T, labels, **counts)


def of_hidden(loss, hidden, weight, labels, keys=None, **counts):
    targets = supervised_targets(labels, keys)
    states = hidden[targets.row, targets.position]
    return hidden_objective(loss, states, OutputHead(weight), targets, **counts)


both_entries = pytest.mark.parametrize("entry", [of_logits, of_hidden])


def gradients(total, *leaves):
    return torch.autograd.grad(total, leaves)


def assert_same(found, expected, **tolerance):
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, **(tolerance or {"rtol": 1e-11, "atol": 1e-12}))


@each_loss
@both_entries
def test_is_its_definition(entry, name):
    labels = random_labels()
    hidden, weight = random_hidden(labels)
    loss = bind(name)
    out = entry(loss, hidden, weight, labels)
    expected = literal(loss, hidden @ weight.T, labels)
    assert_same((out.total, out.cross_entropy, out.auxiliary), expected)
    assert_same(gradients(out.total, hidden, weight), gradients(expected[0], hidden, weight))


@both_entries
def test_no_loss_is_the_cross_entropy_alone(entry):
    labels = random_labels()
    hidden, weight = random_hidden(labels)
    out = entry(None, hidden, weight, labels)
    expected = F.cross_entropy((hidden @ weight.T).flatten(0, 1), labels.flatten())
    assert_same((out.total, out.cross_entropy), (expected, expected))
    assert (out.auxiliary.item(), out.units) == (0.0, 0)


@each_loss
@both_entries
def test_micro_batches_that_share_the_counts_add_up(entry, name):
    labels = random_labels(rows=4)
    hidden, weight = random_hidden(labels)
    loss = bind(name)
    whole = entry(loss, hidden, weight, labels)
    counts = {"num_tokens": whole.tokens, "num_units": torch.tensor(whole.units)}
    halves = [
        entry(loss, hidden[part], weight, labels[part], keys=torch.arange(4)[part], **counts)
        for part in (slice(0, 1), slice(1, 4))
    ]
    assert_same((sum(h.total for h in halves),), (whole.total,))
    assert_same(
        gradients(sum(h.total for h in halves), hidden, weight),
        gradients(whole.total, hidden, weight),
    )
    for field in ("cross_entropy_sum", "auxiliary_sum", "cross_entropy", "auxiliary"):
        assert_same((sum(getattr(h, field) for h in halves),), (getattr(whole, field),))
    assert (sum(h.tokens for h in halves), sum(h.units for h in halves)) == (
        whole.tokens,
        whole.units,
    )


@each_loss
@both_entries
@pytest.mark.parametrize("left", [False, True])
def test_padding_changes_nothing(entry, name, left):
    labels = random_labels()
    hidden, weight = random_hidden(labels)
    padding = torch.full_like(hidden, 1e4)
    wide = torch.cat([padding, hidden] if left else [hidden, padding], 1)
    width = labels.shape[1]
    padded = F.pad(labels, (width, 0) if left else (0, width), value=-100)
    loss = bind(name)
    assert_same(
        (entry(loss, wide, weight, padded).total,), (entry(loss, hidden, weight, labels).total,)
    )


@each_loss
@both_entries
def test_the_order_of_rows_changes_nothing(entry, name):
    labels = random_labels(rows=6)
    hidden, weight = random_hidden(labels)
    order = torch.randperm(6, generator=torch.Generator().manual_seed(3))
    loss = bind(name)
    assert_same(
        (entry(loss, hidden[order], weight, labels[order], keys=order).total,),
        (entry(loss, hidden, weight, labels).total,),
    )


@both_entries
def test_a_padded_vocabulary_counts_in_the_cross_entropy_and_not_in_the_auxiliary(entry):
    labels = random_labels()
    hidden, weight = random_hidden(labels)
    padded = torch.cat([weight, torch.randn(9, H, dtype=weight.dtype)])
    loss = bind("smmd")
    narrow, wide = (entry(loss, hidden, w, labels) for w in (weight, padded))
    assert_same((wide.auxiliary,), (narrow.auxiliary,))
    expected = F.cross_entropy((hidden @ padded.T).flatten(0, 1), labels.flatten())
    assert_same((wide.cross_entropy,), (expected,))


@each_loss
@both_entries
def test_without_a_numeric_target_the_auxiliary_is_a_zero(entry, name):
    labels = random_labels(numeric=0)
    labels = labels.masked_fill(torch.isin(labels, torch.tensor(IDS)), -100)
    hidden, weight = random_hidden(labels)
    out = entry(bind(name), hidden, weight, labels)
    assert (out.auxiliary.item(), out.units) == (0.0, 0)
    smoothing = bind(name).label_smoothing
    plain = F.cross_entropy(
        (hidden @ weight.T).flatten(0, 1), labels.flatten(), label_smoothing=smoothing
    )
    assert_same((out.total,), (plain,))
    assert_same(gradients(out.total, hidden, weight), gradients(plain, hidden, weight))


def test_that_zero_still_has_a_gradient_path():
    logits = torch.randn(1, 2, V, requires_grad=True)
    out = numeric_objective(bind("smmd"), logits, torch.tensor([[-100, 1]]))
    out.auxiliary.backward()
    assert not logits.grad.any()


@each_loss
@both_entries
def test_numeric_targets_alone(entry, name):
    labels = random_labels(numeric=1, ignored=0)
    hidden, weight = random_hidden(labels)
    loss = bind(name)
    out = entry(loss, hidden, weight, labels)
    assert_same((out.total,), literal(loss, hidden @ weight.T, labels)[:1])
    assert out.tokens == labels.numel()


@each_loss
@both_entries
def test_without_a_supervised_token_all_is_zero_with_a_gradient_path(entry, name):
    labels = torch.full((2, 4), -100)
    hidden, weight = random_hidden(labels)
    out = entry(bind(name), hidden, weight, labels)
    assert (out.total.item(), out.cross_entropy.item(), out.auxiliary.item()) == (0.0, 0.0, 0.0)
    assert (out.tokens, out.units) == (0, 0)
    for gradient in gradients(out.total, hidden, weight):
        assert not gradient.any()


@each_loss
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_narrow_logits_are_summed_in_float32(name, dtype):
    labels = random_labels()
    torch.manual_seed(0)
    logits = (3 * torch.randn(*labels.shape, V)).to(dtype).requires_grad_()
    loss = bind(name)
    out = numeric_objective(loss, logits, labels)
    expected = literal(loss, logits.detach().double(), labels)
    assert out.total.dtype == torch.float32
    assert_same(
        (out.total, out.cross_entropy, out.auxiliary),
        [torch.as_tensor(x, dtype=torch.float32) for x in expected],
        rtol=1e-5,
        atol=1e-6,
    )
    assert gradients(out.total, logits)[0].dtype == dtype


@each_loss
def test_the_reported_cross_entropy_is_the_full_one(name):
    labels = random_labels()
    hidden, weight = random_hidden(labels)
    out = of_hidden(bind(name), hidden, weight, labels)
    plain = F.cross_entropy((hidden @ weight.T).flatten(0, 1), labels.flatten())
    assert_same((out.cross_entropy,), (plain,))


@each_loss
def test_units_are_known_before_the_forward_pass(name):
    labels = random_labels()
    hidden, weight = random_hidden(labels)
    out = of_logits(bind(name), hidden, weight, labels)
    assert count_units(bind(name), labels) == out.units
    numeric_at = torch.isin(labels, torch.tensor(IDS))
    numeric_rows, numeric = int(numeric_at.any(1).sum()), int(numeric_at.sum())
    numbers = int((numeric_at & ~F.pad(numeric_at, (1, 0))[:, :-1]).sum())
    few = {"ce": 0, "ce[smoothing=0.3]": 0, "per-row": numeric_rows, "ntil": numbers}
    assert out.units == few.get(name, numeric)
    assert count_units(None, labels) == 0


@pytest.mark.parametrize(
    "options", [{"bias": True}, {"scale": 0.25}, {"soft_cap": 3.0}, {"bias": True, "soft_cap": 5.0}]
)
@each_loss
def test_a_head_that_is_more_than_a_weight_takes_the_plain_path_and_says_so(name, options, caplog):
    labels = random_labels()
    hidden, weight = random_hidden(labels)
    bias = torch.randn(V, dtype=torch.float64, requires_grad=True) if "bias" in options else None
    head = OutputHead(weight, bias, options.get("scale", 1.0), options.get("soft_cap"))
    logits = F.linear(hidden, weight, bias) * options.get("scale", 1.0)
    if cap := options.get("soft_cap"):
        logits = cap * torch.tanh(logits / cap)
    targets = supervised_targets(labels)
    loss = bind(name)
    objective._say_once.cache_clear()
    with caplog.at_level(logging.WARNING, logger="smmd_bench"):
        out = hidden_objective(loss, hidden[targets.row, targets.position], head, targets)
    assert "bias, scale or soft-cap" in caplog.text
    expected = literal(loss, logits, labels)
    assert_same((out.total, out.cross_entropy, out.auxiliary), expected)
    leaves = [hidden, weight, *([bias] if bias is not None else [])]
    assert_same(gradients(out.total, *leaves), gradients(expected[0], *leaves))


def test_logits_of_the_supervised_tokens_alone_will_do():
    labels = random_labels()
    hidden, weight = random_hidden(labels)
    targets = supervised_targets(labels)
    logits = hidden[targets.row, targets.position] @ weight.T
    out = logits_objective(bind("smmd"), logits, targets)
    assert_same((out.total,), (of_logits(bind("smmd"), hidden, weight, labels).total,))


def test_logits_and_labels_that_are_not_aligned_are_an_error():
    with pytest.raises(ValueError, match="are not aligned"):
        numeric_objective(None, torch.zeros(2, 5, V), torch.zeros(2, 4, dtype=torch.long))


def test_a_loss_that_is_not_bound_is_an_error():
    with pytest.raises(TypeError, match=r"pass loss\.bind"):
        numeric_objective(load_loss("smmd"), torch.zeros(1, 1, V), torch.zeros(1, 1).long())


@both_entries
def test_a_vocabulary_of_another_model_is_an_error(entry):
    labels = random_labels().clamp(max=9)
    hidden, weight = random_hidden(labels)
    with pytest.raises(ValueError, match="has token 60, but the logits have only 10 columns"):
        entry(bind("smmd"), hidden, weight[:10], labels)


def test_a_loss_without_forward_says_so():
    loss = NumericLoss(load_loss("ntl"), bind("ntl").vocabulary)
    with pytest.raises(NotImplementedError, match="NumericLoss has no forward"):
        numeric_objective(loss, torch.zeros(1, 1, V), torch.tensor([[IDS[0]]]))
