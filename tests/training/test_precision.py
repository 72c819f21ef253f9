"""A model that computes in another dtype for a while."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from smmd_bench.models.loading import load_model
from smmd_bench.training.canary import make_canary
from smmd_bench.training.precision import computing_in


def test_a_bfloat16_model_computes_as_its_weights_do_in_float32(
    tiny_checkpoints: Callable[[str], Any],
) -> None:
    ids = torch.tensor([[4, 5, 6, 7]])
    model = load_model(tiny_checkpoints("digit").base, "bfloat16")
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


def test_weights_and_hooks_are_put_back_after_a_failure(
    tiny_checkpoints: Callable[[str], Any],
) -> None:
    model = load_model(tiny_checkpoints("triple").base, "bfloat16")
    before = [(name, id(p), p.dtype) for name, p in model.named_parameters()]

    class StoppedError(Exception):
        """What a module raises."""

    def stop(*_: Any) -> None:
        raise StoppedError

    handle = model.model.layers[1].mlp.act_fn.register_forward_hook(stop)
    with pytest.raises(StoppedError), torch.no_grad(), computing_in(model, torch.float32):
        model(torch.tensor([[4, 5, 6]]))
    handle.remove()
    assert [(name, id(p), p.dtype) for name, p in model.named_parameters()] == before
    assert model(torch.tensor([[4, 5, 6]])).logits.dtype == torch.bfloat16


@pytest.mark.filterwarnings("ignore:`hidden_state` is deprecated:FutureWarning")
@pytest.mark.parametrize("architecture", ["qwen2_5_vl", "mistral3", "mllama"])
def test_vision_models_compute_in_either_dtype(
    tiny_vlm: Callable[[str], Path], architecture: str
) -> None:
    """Text is read as by the same weights in float32. Pictures are not: the model itself rounds
    their pixels to the dtype of its weights."""
    from smmd_bench.models.processor import load_processor

    folder = tiny_vlm(architecture)
    processor = load_processor(folder)
    model = load_model(folder, "bfloat16")
    canary = make_canary(model, processor.tokenizer, processor, dtype="bfloat16")
    expected = make_canary(model.float(), processor.tokenizer, processor)
    *texts, picture = canary.log_probabilities
    for row, other in zip(texts, expected.log_probabilities[:-1], strict=True):
        assert row == pytest.approx(other, abs=1e-4)
    assert np.isfinite(picture).all()
    assert canary.rounded != canary.log_probabilities
    assert [len(row) for row in canary.rounded] == [len(r) for r in canary.log_probabilities]
