"""A model that computes in another dtype for a while."""

import pytest
import torch

from smmd_bench.models.loading import load_model
from smmd_bench.training.precision import computing_in


def test_a_bfloat16_model_computes_as_its_weights_do_in_float32(tiny):
    ids = torch.tensor([[4, 5, 6, 7]])
    model = load_model(tiny.base, "bfloat16")
    with torch.no_grad():
        plain = model(ids).logits
        with computing_in(model, torch.float32):
            exact = model(ids).logits
        again = model(ids).logits
        expected = model.float()(ids).logits
    assert exact.dtype == torch.float32
    torch.testing.assert_close(exact, expected, atol=1e-6, rtol=0)
    assert torch.equal(plain, again)
    assert not torch.equal(plain.float(), exact)


def test_weights_and_hooks_are_put_back_after_a_failure(tiny_checkpoints):
    model = load_model(tiny_checkpoints("triple").base, "bfloat16")
    before = [(name, id(p), p.dtype) for name, p in model.named_parameters()]

    class StoppedError(Exception):
        """What a module raises."""

    def stop(*_):
        raise StoppedError

    handle = model.model.layers[1].mlp.act_fn.register_forward_hook(stop)
    with pytest.raises(StoppedError), torch.no_grad(), computing_in(model, torch.float32):
        model(torch.tensor([[4, 5, 6]]))
    handle.remove()
    assert [(name, id(p), p.dtype) for name, p in model.named_parameters()] == before
    assert model(torch.tensor([[4, 5, 6]])).logits.dtype == torch.bfloat16
