"""The fused Function: any chunk, any kind of head, any precision."""

import pytest
import torch
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

from smmd_bench.objective import numeric_term
from smmd_bench.objective.objective import hidden_objective, supervised_targets
from smmd_bench.objective.output_head import OutputHead

from ..training.toys import IDS, LOSSES, H, T, V, bind, literal, random_hidden, random_labels

each_loss = pytest.mark.parametrize("name", LOSSES)


def objective(loss, hidden, weight, labels, **options):
    targets = supervised_targets(labels)
    states = hidden[targets.row, targets.position]
    return hidden_objective(loss, states, OutputHead(weight), targets, **options)


def assert_same(found, expected, rtol=1e-11, atol=1e-12):
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=rtol, atol=atol)


@pytest.mark.parametrize("chunk_elements", [1, V - 1, V, 5 * V, 10**6])
@pytest.mark.parametrize("head", ["frozen", "trainable", "only the head"])
@each_loss
def test_equals_cross_entropy_over_all_logits_whatever_the_chunk(name, head, chunk_elements):
    labels = random_labels()
    hidden, weight = random_hidden(labels)
    weight.requires_grad_(head != "frozen")
    hidden.requires_grad_(head != "only the head")
    leaves = [leaf for leaf in (hidden, weight) if leaf.requires_grad]
    loss = bind(name)
    out = objective(loss, hidden, weight, labels, chunk_elements=chunk_elements)
    expected = literal(loss, hidden @ weight.T, labels)
    assert_same((out.total, out.cross_entropy, out.auxiliary), expected)
    assert_same(torch.autograd.grad(out.total, leaves), torch.autograd.grad(expected[0], leaves))


@pytest.mark.parametrize("head", ["frozen", "trainable"])
@each_loss
def test_a_separable_loss_may_be_evaluated_position_by_position(name, head, monkeypatch):
    monkeypatch.setattr(numeric_term, "_ON_CPU", 1)
    labels = random_labels()
    hidden, weight = random_hidden(labels)
    leaves = [hidden, weight.requires_grad_(head == "trainable")][: 1 + (head == "trainable")]
    loss = bind(name)
    out = objective(loss, hidden, weight, labels, chunk_elements=5 * V)
    expected = literal(loss, hidden @ weight.T, labels)
    assert_same((out.total, out.auxiliary), (expected[0], expected[2]))
    assert_same(torch.autograd.grad(out.total, leaves), torch.autograd.grad(expected[0], leaves))


@each_loss
def test_a_tied_head_adds_to_the_gradient_of_the_embedding(name):
    labels = random_labels()
    _, weight = random_hidden(labels)
    ids = torch.randint(V, labels.shape, generator=torch.Generator().manual_seed(2))
    loss = bind(name)
    out = objective(loss, F.embedding(ids, weight).tanh(), weight, labels, chunk_elements=3 * V)
    expected, *_ = literal(loss, F.embedding(ids, weight).tanh() @ weight.T, labels)
    assert_same(torch.autograd.grad(out.total, weight), torch.autograd.grad(expected, weight))


@pytest.mark.parametrize("trainable", [False, True])
@each_loss
def test_gradient_is_that_of_finite_differences(name, trainable):
    labels = random_labels(rows=2)[:, :6]
    hidden, weight = random_hidden(labels)
    loss = bind(name)

    def total(hidden, weight):
        return objective(loss, hidden, weight, labels, chunk_elements=2 * V).total

    assert torch.autograd.gradcheck(total, (hidden, weight.requires_grad_(trainable)))


def test_highest_logits_in_any_chunk_neither_overflow_nor_vanish():
    labels = torch.tensor([[0, V - 1, IDS[0], 5]])
    hidden, weight = random_hidden(labels, dtype=torch.float32)
    weight = (weight * 200).detach().requires_grad_()
    out = objective(bind("smmd"), hidden, weight, labels, chunk_elements=8)
    expected = F.cross_entropy((hidden @ weight.T)[0], labels[0])
    assert_same((out.cross_entropy,), (expected,), rtol=1e-5, atol=1e-5)
    assert all(g.isfinite().all() for g in torch.autograd.grad(out.total, (hidden, weight)))


@pytest.mark.parametrize("trainable", [False, True])
def test_a_factor_on_the_total_reaches_the_gradients_and_they_can_be_asked_for_twice(trainable):
    labels = random_labels()
    hidden, weight = random_hidden(labels)
    leaves = (hidden, weight.requires_grad_(trainable))[: 1 + trainable]
    total = objective(bind("smmd"), hidden, weight, labels).total
    once = torch.autograd.grad(total, leaves, retain_graph=True)
    thrice = torch.autograd.grad(3 * total, leaves, retain_graph=True)
    again = torch.autograd.grad(total, leaves)
    assert_same(thrice, [3 * g for g in once])
    assert_same(again, once)


def test_a_second_derivative_is_refused():
    labels = random_labels()
    hidden, weight = random_hidden(labels)
    total = objective(bind("smmd"), hidden, weight, labels).total
    (gradient,) = torch.autograd.grad(total, hidden, create_graph=True)
    with pytest.raises(RuntimeError, match="does not require grad"):
        gradient.sum().backward()


@each_loss
def test_without_gradients_only_values_are_made(name):
    labels = random_labels()
    hidden, weight = random_hidden(labels)
    loss = bind(name)
    with torch.no_grad():
        out = objective(loss, hidden, weight, labels)
    assert not out.total.requires_grad
    expected = literal(loss, hidden @ weight.T, labels)
    assert_same((out.total, out.cross_entropy, out.auxiliary), expected)


@pytest.mark.parametrize("trainable", [False, True])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@each_loss
def test_narrow_weights_give_narrow_gradients_near_the_wide_ones(name, dtype, trainable):
    labels = random_labels()
    hidden, weight = random_hidden(labels, dtype=dtype)
    weight.requires_grad_(trainable)
    leaves = (hidden, weight)[: 1 + trainable]
    loss = bind(name)
    out = objective(loss, hidden, weight, labels, chunk_elements=4 * V)
    found = torch.autograd.grad(out.total, leaves)
    wide = [leaf.detach().double().requires_grad_() for leaf in (hidden, weight)]
    expected, *_ = literal(loss, wide[0] @ wide[1].T, labels)
    reference = torch.autograd.grad(expected, wide[: 1 + trainable])
    assert out.total.dtype == torch.float32
    assert out.total.item() == pytest.approx(expected.item(), rel=2e-2)
    for a, b in zip(found, reference, strict=True):
        assert a.dtype == dtype
        assert (a.double() - b).norm() < 2e-2 * b.norm()


@pytest.mark.parametrize("trainable", [False, True])
def test_under_autocast_products_are_narrow_and_gradients_wide(trainable):
    labels = random_labels()
    hidden, weight = random_hidden(labels, dtype=torch.float32)
    weight.requires_grad_(trainable)
    leaves = (hidden, weight)[: 1 + trainable]
    with torch.autocast("cpu", torch.bfloat16):
        out = objective(bind("smmd"), hidden, weight, labels, chunk_elements=4 * V)
        logits = F.linear(hidden, weight).float()
    found = torch.autograd.grad(out.total, leaves)
    expected, *_ = literal(bind("smmd"), logits, labels)
    assert logits.dtype == out.total.dtype == torch.float32
    assert_same((out.total,), (expected,), rtol=1e-3, atol=1e-3)
    for a, b in zip(found, torch.autograd.grad(expected, leaves), strict=True):
        assert a.dtype == torch.float32
        assert (a - b).norm() < 2e-2 * b.norm()


@pytest.mark.parametrize("reentrant", [False, True])
@each_loss
def test_works_inside_gradient_checkpointing(name, reentrant):
    labels = random_labels()
    hidden, weight = random_hidden(labels)
    loss = bind(name)

    def total(states):
        return objective(loss, states.tanh(), weight, labels).total

    found = torch.autograd.grad(checkpoint(total, hidden, use_reentrant=False), (hidden, weight))
    if reentrant:  # gives gradients by backward() alone
        checkpoint(total, hidden, use_reentrant=True).backward()
        found = (hidden.grad, weight.grad)
    assert_same(found, torch.autograd.grad(total(hidden), (hidden, weight)))


class Largest(TorchDispatchMode):
    """The largest number of elements that any operation gave."""

    elements = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for tensor in out if isinstance(out, tuple | list) else [out]:
            if isinstance(tensor, torch.Tensor):
                self.elements = max(self.elements, tensor.numel())
        return out


@each_loss
def test_a_frozen_head_never_holds_the_logits(name):
    labels = random_labels(ignored=0)
    hidden, weight = random_hidden(labels)
    weight.requires_grad_(False)
    loss = bind(name)
    with Largest() as largest:
        objective(loss, hidden, weight, labels, chunk_elements=2 * V).total.backward()
    assert largest.elements == V * H  # a view of the weight
    assert largest.elements < T * V


@each_loss
def test_a_trainable_head_makes_one_gradient_of_its_weight_and_a_chunk(name):
    labels = random_labels(ignored=0)
    hidden, weight = random_hidden(labels)
    loss = bind(name)
    made = []

    class OfWeightSize(Largest):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            out = super().__torch_dispatch__(function, types, args, kwargs)
            if isinstance(out, torch.Tensor) and out.shape == weight.shape:
                made.append(out.untyped_storage().data_ptr())
            return out

    with OfWeightSize() as largest:
        objective(loss, hidden, weight, labels, chunk_elements=2 * V).total.backward()
    assert largest.elements == V * H
    assert set(made) == {weight.data_ptr(), weight.grad.data_ptr()}
