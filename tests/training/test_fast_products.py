"""Fast float32 products are as exact as the slow ones, and end with the training or the session."""

import pytest
import torch
from smmd_bench.plugins.engines.transformers import TransformersEngine
from torch.nn.functional import scaled_dot_product_attention

from smmd_bench.contracts import EngineSettings
from smmd_bench.models.cards import model_card
from smmd_bench.training.faster_steps import SHORT, fast_products


def flags():
    """What decides how torch multiplies, and whether it attends by blocks."""
    return (
        torch.backends.mkldnn.matmul.fp32_precision,
        torch.backends.cuda.flash_sdp_enabled(),
    )


def largest_errors(longest):
    """Of a product, its gradient and attention inside, against float64; the flags inside."""
    torch.manual_seed(0)
    x = torch.randn(512, 256)
    w = torch.randn(256, 384, requires_grad=True)
    q = torch.randn(2, 2, 28, 64)

    with fast_products(x, longest):
        inside = flags()
        y = x @ w
        y.square().sum().backward()
        attended = scaled_dot_product_attention(q, q, q, is_causal=True)

    exact = w.detach().double().requires_grad_()
    z = x.double() @ exact
    z.square().sum().backward()
    long = q.double()
    right = scaled_dot_product_attention(long, long, long, is_causal=True)
    pairs = (y, z), (w.grad, exact.grad), (attended, right)
    with torch.no_grad():
        errors = [float((a - b).abs().max() / b.abs().max()) for a, b in pairs]
    return errors, inside


def rounds():
    """Whether this machine rounds products that torch gives to oneDNN."""
    matmul = torch.backends.mkldnn.matmul
    x = torch.randn(256, 256)
    original = matmul.fp32_precision
    matmul.fp32_precision = "bf16"
    error = ((x @ x).double() - x.double() @ x.double()).abs().max()
    matmul.fp32_precision = original
    return error > 1e-3


def test_they_are_as_exact_as_float32_on_every_machine():
    original = flags()
    for longest in (SHORT, SHORT + 1):
        errors, (flag, by_blocks) = largest_errors(longest)
        assert max(errors) < 2e-6
        assert (flag == "bf16") == (not rounds())
        assert by_blocks == (longest > SHORT or rounds())
    assert original == flags()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_other_precisions_and_machines_that_round_keep_what_they_had(
    monkeypatch, dtype
):
    """As oneDNN does with Intel's AMX: a product is rounded to bfloat16."""
    plain = torch.Tensor.__matmul__
    monkeypatch.setattr(
        torch.Tensor, "__matmul__", lambda a, b: plain(a, b).bfloat16().to(a.dtype)
    )
    original = flags()
    if dtype != torch.float32:
        monkeypatch.undo()
    with fast_products(torch.zeros(1, dtype=dtype), 28):
        assert flags() == original == (original[0], True)


def test_a_session_of_the_transformers_engine_multiplies_so_and_attends_by_blocks():
    original = flags()
    base = model_card("builtin/tiny").folder
    with TransformersEngine().open(base, EngineSettings(max_model_length=32)):
        inside, by_blocks = flags()
    assert (inside == "bf16") == (not rounds())
    assert by_blocks
    assert original == flags()
