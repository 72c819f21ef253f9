"""The Trainer with the harness's objective, on a real checkpoint of two layers."""

import random

import pytest
import torch
from transformers import AutoModelForCausalLM

import smmd_bench as sb
from smmd_bench.contracts import Example
from smmd_bench.encoding.data import RightPaddingCollator, TokenisedExamples
from smmd_bench.objective.output_head import causal_model

from .trained import moved, require_objective_of, require_same_log, train

pytestmark = pytest.mark.engine


def sums(tokenizer, count=24):
    rng = random.Random(0)
    pairs = [(rng.randrange(1000), rng.randrange(10)) for _ in range(count)]
    examples = [
        Example(f"{i}", f"{a}+{b}=", str(a + b), None) for i, (a, b) in enumerate(pairs)
    ]
    return TokenisedExamples(examples, tokenizer, 64)


def trained(tiny, folder, spec, *, pad=0, **options):
    """Three steps of 8 examples; `pad` columns more on the right of every batch."""
    collate = RightPaddingCollator(tiny.tokenizer.pad_token_id)

    def padded(rows):
        batch = collate(rows)
        for key, value in {"input_ids": 0, "attention_mask": 0, "labels": -100}.items():
            batch[key] = torch.nn.functional.pad(batch[key], (0, pad), value=value)
        return batch

    options = {"epochs": 1, "batch_size": 8, **options}
    data = sums(tiny.tokenizer)
    return train(tiny.base, folder, data, padded, tiny.tokenizer, spec, **options)


@pytest.mark.parametrize(
    ("spec", "method"),
    [("ce", "full"), ("ntil", "full"), ("gce", "full"), ("smmd", "full"), ("ntil", "lora"),
     ("smmd", "lora")],
)  # fmt: skip
def test_micro_batches_change_nothing(tiny, tmp_path, spec, method):
    options = {"method": method, "sgd": True, "warmup_ratio": 0.0}
    at_once, log = trained(tiny, tmp_path, spec, **options)
    options["micro_batch_size"] = 2
    split, split_log = trained(tiny, tmp_path, spec, **options)

    pairs = zip(at_once.parameters(), split.parameters(), strict=True)
    for a, b in pairs:
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)
    assert moved(at_once, tiny.base)
    assert len(log) == 3
    require_same_log(split_log, log, 1e-4)


@pytest.mark.parametrize(
    ("spec", "method", "dtype", "within"),
    [("smmd", "lora", "bfloat16", 0.05), ("smmd", "full", "float32", 1e-5),
     ("ntil", "lora", "float32", 1e-5)],
)  # fmt: skip
def test_no_option_that_saves_memory_changes_the_losses(
    tiny, tmp_path, spec, method, dtype, within
):
    calls = []

    def losses(**options):
        def watch(model):
            calls.append(0)
            layer = causal_model(model).model.layers[0]
            layer.register_forward_pre_hook(lambda *_: calls.append(calls.pop() + 1))

        common = {"method": method, "dtype": dtype, "watch": watch}
        _, log = trained(tiny, tmp_path, spec, **common, **options)
        return [line["loss"] for line in log]

    plain = losses()

    for options in (
        {"gradient_checkpointing": True},
        {"micro_batch_size": 2},
        {"pad": 9},
    ):
        assert losses(**options) == pytest.approx(plain, rel=within), options
    assert calls[:2] == [3, 6]  # each forward pass once more in the backward pass


def test_the_logged_cross_entropy_is_the_models_own(tiny):
    data = sums(tiny.tokenizer, 8)
    batch = RightPaddingCollator(tiny.tokenizer.pad_token_id)(
        [data[i] for i in range(8)]
    )
    loss = sb.load_loss("smmd").bind(sb.numeric_vocabulary(tiny.tokenizer))
    require_objective_of(AutoModelForCausalLM.from_pretrained(tiny.base), batch, loss)
