"""Canaries: what transformers says of a checkpoint, of text and of a picture."""

import json
from dataclasses import asdict

import numpy as np
import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM

from smmd_bench.models.loading import load_model
from smmd_bench.models.processor import load_processor
from smmd_bench.training.canary import computing_in, make_canary
from smmd_bench.training.canary_texts import (
    CanaryTexts,
    canary_from,
    canary_images,
    canary_picture,
    general_texts,
)

from ..tiny_vlms import each


def test_it_holds_the_log_probabilities_of_a_plain_forward_pass(tiny):
    model = AutoModelForCausalLM.from_pretrained(tiny.base)
    canary = make_canary(model, CanaryTexts(((4, 5, 6, 7), (8, 9)), (3, 1)))
    with torch.no_grad():
        log_p = model(torch.tensor([[4, 5, 6, 7]])).logits[0].log_softmax(-1)
    expected = [float(log_p[i, token]) for i, token in enumerate((5, 6, 7))]
    assert canary.log_probabilities[0] == pytest.approx(expected, abs=1e-6)
    assert [len(row) for row in canary.log_probabilities] == [3, 1]


def test_making_one_leaves_the_modes_of_every_module(tiny):
    adapter = LoraConfig(r=4, lora_dropout=0.5, target_modules=["q_proj"])
    model = get_peft_model(AutoModelForCausalLM.from_pretrained(tiny.base), adapter)
    model.train()
    next(model.children()).eval()  # as a frozen part is
    before = [module.training for module in model.modules()]
    first, second = (make_canary(model, general_texts(tiny.tokenizer)) for _ in range(2))
    assert first == second  # no dropout while it reads
    assert [module.training for module in model.modules()] == before


@each
def test_one_with_a_picture_is_plain_and_sees_the_tower(tiny_vlm, architecture):
    folder = tiny_vlm(architecture)
    processor, model = load_processor(folder), load_model(folder, "float32")
    text, seeing = (
        make_canary(model, general_texts(processor.tokenizer, p), p) for p in (None, processor)
    )
    assert seeing.pictures == 1
    assert seeing.token_ids[:-1] == text.token_ids
    assert seeing.log_probabilities[:-1] == text.log_probabilities
    assert canary_from(json.loads(json.dumps(asdict(seeing)))) == seeing
    assert canary_images(seeing) == [*[[]] * len(text.token_ids), [canary_picture()]]
    assert canary_images(text) is None
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if ("visual" in name or "vision" in name) and parameter.dim() > 1:
                parameter.mul_(1.5)
    other = make_canary(model, general_texts(processor.tokenizer, processor), processor)
    assert other.log_probabilities[:-1] == seeing.log_probabilities[:-1]
    assert np.abs(np.subtract(other.log_probabilities[-1], seeing.log_probabilities[-1])).max() > 1


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
