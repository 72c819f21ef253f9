"""Canaries: what transformers says of a checkpoint, of text and of a picture."""

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM

from smmd_bench.contracts import Answer, Example
from smmd_bench.encoding.prompts import encode_prompts, encode_targets
from smmd_bench.models.loading import load_model
from smmd_bench.models.tokenizers import load_processor
from smmd_bench.training import canary_texts as texts
from smmd_bench.training.canary import computing_in, make_canary
from smmd_bench.training.canary_texts import canary_texts, general_texts

from ..tiny_vlms import each


def test_it_holds_the_log_probabilities_of_a_plain_forward_pass(tiny):
    model = AutoModelForCausalLM.from_pretrained(tiny.base)
    canary = make_canary(model, texts.CanaryTexts(((4, 5, 6, 7), (8, 9)), (3, 1)))
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
    modes = [module.training for module in model.modules()]
    canary = make_canary(model, general_texts(tiny.tokenizer))

    # no dropout while it reads
    assert canary == make_canary(model, general_texts(tiny.tokenizer))
    assert [module.training for module in model.modules()] == modes


@each
def test_one_with_a_picture_is_plain_and_sees_the_tower(tiny_vlm, architecture):
    folder = tiny_vlm(architecture)
    processor = load_processor(folder)
    model = load_model(folder, "float32")
    with_picture = general_texts(processor.tokenizer, processor)
    plain = make_canary(model, general_texts(processor.tokenizer))
    seeing = make_canary(model, with_picture, processor)

    assert seeing.pictures == 1
    assert seeing.token_ids[:-1] == plain.token_ids
    assert seeing.log_probabilities[:-1] == plain.log_probabilities
    assert texts.canary_from(json.loads(json.dumps(asdict(seeing)))) == seeing
    assert texts.canary_images(seeing) == [
        *[[]] * len(plain.token_ids),
        [texts.canary_picture()],
    ]
    assert texts.canary_images(plain) is None

    tower = [weight for name, weight in model.named_parameters() if "vis" in name]
    with torch.no_grad():
        for weight in tower:
            if weight.dim() > 1:
                weight.mul_(1.5)

    changed = make_canary(model, with_picture, processor)
    assert changed.log_probabilities[:-1] == seeing.log_probabilities[:-1]

    off = np.subtract(changed.log_probabilities[-1], seeing.log_probabilities[-1])
    assert np.abs(off).max() > 1


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


def sums(count, words=0):
    """Every third one is shorter than the others."""
    return [
        Example(
            f"sum/{k}",
            f"{k}+{k}={'1+2=' * (words + 4 * bool(k % 3))}",
            "123456789012345"[: 1 + k % 15],
            Answer(k),
            images=(Path("nowhere.png"),),
        )
        for k in range(count)
    ]


def test_they_are_the_shortest_prompts_with_the_first_tokens_of_their_targets(
    tiny_checkpoints,
):
    tokenizer = tiny_checkpoints("digit").tokenizer
    examples = sums(90)
    chosen = canary_texts(examples, tokenizer, None, 400)

    assert chosen == canary_texts(examples, tokenizer, None, 400)

    *short, long = chosen.token_ids
    *scored_of_short, scored_of_long = chosen.scored
    assert len(short) == texts.SEQUENCES
    scored = count_scored(examples, tokenizer)
    assert [scored[ids] for ids in short] == scored_of_short

    longest = len(short[-1])
    shorter = [ids for ids in scored if len(ids) < longest]
    assert len(shorter) <= texts.SEQUENCES

    # A block of a prefix cache, and more.
    assert len(long) == texts.CACHED
    assert scored_of_long == texts.CACHED - texts.BLOCK
    first = short[0]
    assert long[: len(first)] == first


def count_scored(examples, tokenizer):
    """How many tokens of a target are scored, by the ids of prompt and target."""
    prompts = encode_prompts(tokenizer, [example.prompt for example in examples])
    targets = encode_targets(tokenizer, [example.target for example in examples])
    scored = {}
    for prompt, target in zip(prompts, targets, strict=True):
        first = target[: texts.SCORED]
        scored[*prompt, *first] = len(first)
    return scored


def test_prompts_with_a_picture_come_behind_texts_without(tiny_vlm):
    processor = load_processor(tiny_vlm("qwen2_5_vl"))
    tokenizer = processor.tokenizer
    chosen = canary_texts(sums(30), tokenizer, processor, 400)
    general = general_texts(tokenizer, processor)

    assert chosen.pictures == texts.SEQUENCES_WITH_PICTURES

    texts_alone = general.token_ids[: -general.pictures]
    count = len(texts_alone)
    assert chosen.token_ids[:count] == texts_alone

    placeholder = processor.image_token_id
    counts = [ids.count(placeholder) for ids in chosen.token_ids]
    assert counts == [0] * count + [1] * chosen.pictures

    bare = [Example("a", "1+1=", "2", Answer(2))]
    assert canary_texts(bare, tokenizer, processor, 400) == general
