"""The fused Function: any chunk, any kind of head, any precision."""

import pytest
import torch
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

from smmd_bench import numeric_objective
from smmd_bench.objective import numeric_term

from .entries import (
    assert_same,
    each_loss,
    gradients,
    of_hidden,
    parts,
    trainable_or_not,
)
from .toys import H, T, V, bind, literal, random_batch, random_hidden, random_labels


@pytest.mark.parametrize("one_by_one", [False, True], ids=["", "position by position"])
@pytest.mark.parametrize("chunk_elements", [1, 5 * V])
@pytest.mark.parametrize("head", ["frozen", "trainable", "only the head"])
@each_loss
def test_equals_cross_entropy_over_all_logits_whatever_the_chunk(
    name, head, chunk_elements, one_by_one, monkeypatch
):
    if one_by_one:  # as separable losses are evaluated on a CPU
        monkeypatch.setattr(numeric_term, "_ON_CPU", 1)
    labels, hidden, weight = random_batch()
    weight.requires_grad_(head != "frozen")
    hidden.requires_grad_(head != "only the head")
    leaves = [leaf for leaf in (hidden, weight) if leaf.requires_grad]
    loss = bind(name)
    out = of_hidden(loss, hidden, weight, labels, chunk_elements=chunk_elements)
    expected = literal(loss, hidden @ weight.T, labels)

    assert_same(parts(out), expected)
    assert_same(gradients(out.total, *leaves), gradients(expected[0], *leaves))


@each_loss
def test_a_tied_head_adds_to_the_gradient_of_the_embedding(name):
    labels = random_labels()
    _, weight = random_hidden(labels)
    ids = torch.randint(V, labels.shape, generator=torch.Generator().manual_seed(2))
    loss = bind(name)
    states = F.embedding(ids, weight).tanh()
    out = of_hidden(loss, states, weight, labels, chunk_elements=3 * V)

    logits = states @ weight.T
    expected, *_ = literal(loss, logits, labels)

    assert_same(gradients(out.total, weight), gradients(expected, weight))


@trainable_or_not
@each_loss
def test_gradient_is_that_of_finite_differences(name, trainable):
    labels = random_labels(rows=2)[:, :6]
    hidden, weight = random_hidden(labels)
    loss = bind(name)

    def total(hidden, weight):
        return of_hidden(loss, hidden, weight, labels, chunk_elements=2 * V).total

    leaves = (hidden, weight.requires_grad_(trainable))

    assert loss.stops_gradient or torch.autograd.gradcheck(
        total, leaves, fast_mode=True
    )


@trainable_or_not
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@each_loss
def test_narrow_weights_give_narrow_gradients_near_the_wide_ones(
    name, dtype, trainable
):
    labels, hidden, weight = random_batch(dtype=dtype)
    leaves = leaves_of(hidden, weight, trainable)
    loss = bind(name)
    out = of_hidden(loss, hidden, weight, labels, chunk_elements=4 * V)
    total = out.total

    wide_hidden, wide_weight = map(widen, (hidden, weight))
    logits = wide_hidden @ wide_weight.T
    expected, *_ = literal(loss, logits, labels)

    assert total.dtype == torch.float32
    torch.testing.assert_close(total.double(), expected, rtol=2e-2, atol=0)

    narrow_gradients = gradients(total, *leaves)
    wide_leaves = leaves_of(wide_hidden, wide_weight, trainable)
    wide_gradients = gradients(expected, *wide_leaves)
    require_near(narrow_gradients, wide_gradients, dtype)


def widen(leaf):
    """A leaf of its values in float64."""
    return leaf.detach().double().requires_grad_()


@trainable_or_not
def test_under_autocast_products_are_narrow_and_gradients_wide(trainable):
    labels, hidden, weight = random_batch(dtype=torch.float32)
    leaves = leaves_of(hidden, weight, trainable)
    loss = bind("smmd")

    with torch.autocast("cpu", torch.bfloat16):
        total = of_hidden(loss, hidden, weight, labels, chunk_elements=4 * V).total
        logits = F.linear(hidden, weight).float()
        plain = numeric_objective(loss, logits, labels)

    expected, *_ = literal(loss, logits, labels)

    assert total.dtype == torch.float32
    for result in (total, plain.total):
        torch.testing.assert_close(result, expected, rtol=1e-3, atol=1e-3)

    narrow_gradients = gradients(total, *leaves)
    wide_gradients = gradients(expected, *leaves)
    require_near(narrow_gradients, wide_gradients, torch.float32)


def leaves_of(hidden, weight, trainable):
    weight.requires_grad_(trainable)
    return [hidden, weight] if trainable else [hidden]


def require_near(gradients, expected, dtype):
    """Require gradients of a dtype, within 2% of the expected ones."""
    for narrow, wide in zip(gradients, expected, strict=True):
        assert narrow.dtype == dtype
        assert (narrow.double() - wide).norm() < 2e-2 * wide.norm()


@pytest.mark.parametrize("reentrant", [False, True])
@each_loss
def test_works_inside_gradient_checkpointing(name, reentrant):
    labels, hidden, weight = random_batch()
    loss = bind(name)

    def total(states):
        return of_hidden(loss, states.tanh(), weight, labels).total

    if reentrant:  # gives gradients by backward() alone
        checkpoint(total, hidden, use_reentrant=True).backward()
        with_checkpoints = (hidden.grad, weight.grad)
    else:
        out = checkpoint(total, hidden, use_reentrant=False)
        with_checkpoints = gradients(out, hidden, weight)

    assert_same(with_checkpoints, gradients(total(hidden), hidden, weight))


class Watch(TorchDispatchMode):
    """The largest number of elements that any operation gave, and what it gave in one shape."""

    def __init__(self, shape):
        super().__init__()
        self.shape, self.elements, self.places = shape, 0, set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for tensor in out if isinstance(out, tuple | list) else [out]:
            if isinstance(tensor, torch.Tensor):
                self.elements = max(self.elements, tensor.numel())
                if tensor.shape == self.shape:
                    self.places.add(tensor.untyped_storage().data_ptr())
        return out


@trainable_or_not
@each_loss
def test_the_logits_are_never_held_and_a_weight_has_one_gradient(name, trainable):
    labels, hidden, weight = random_batch(ignored=0)
    weight.requires_grad_(trainable)
    loss = bind(name)
    with Watch(weight.shape) as seen:
        of_hidden(loss, hidden, weight, labels, chunk_elements=2 * V).total.backward()

    assert seen.elements == V * H < T * V  # a view of the weight, or its gradient

    if trainable:
        assert seen.places == {weight.data_ptr(), weight.grad.data_ptr()}
