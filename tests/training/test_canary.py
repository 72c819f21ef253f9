"""Canaries: what transformers says of a checkpoint, and how a deviation is reported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from smmd_bench.contracts import Canary, Checkpoint
from smmd_bench.decoding.canary_check import check_canary
from smmd_bench.training.canary import make_canary

CHECKPOINT = Checkpoint("epoch 3", "lora", Path("here"), Canary(((1, 2, 3),), ((-1.0, -2.0),)))


def test_it_holds_the_log_probabilities_of_a_plain_forward_pass(
    tiny_checkpoints: Callable[[str], Any],
) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(tiny_checkpoints("digit").base)
    canary = make_canary(model, [[4, 5, 6, 7], [8, 9]])
    with torch.no_grad():
        log_p = model(torch.tensor([[4, 5, 6, 7]])).logits[0].log_softmax(-1)
    expected = [float(log_p[i, token]) for i, token in enumerate((5, 6, 7))]
    assert canary.log_probabilities[0] == pytest.approx(expected, abs=1e-6)
    assert [len(row) for row in canary.log_probabilities] == [3, 1]


def test_making_one_leaves_the_modes_of_every_module(
    tiny_checkpoints: Callable[[str], Any],
) -> None:
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    tiny = tiny_checkpoints("digit")
    model = get_peft_model(
        AutoModelForCausalLM.from_pretrained(tiny.base),
        LoraConfig(r=4, lora_dropout=0.5, target_modules=["q_proj"]),
    )
    model.train()
    frozen = next(model.children())
    frozen.eval()
    before = [module.training for module in model.modules()]
    first, second = make_canary(model, tiny.tokenizer), make_canary(model, tiny.tokenizer)
    assert first == second  # no dropout while it reads
    assert [module.training for module in model.modules()] == before


@pytest.mark.parametrize("sequences", [[], [[1]], [[1, 2], []]])
def test_sequences_that_say_nothing_are_refused(sequences: list[list[int]]) -> None:
    import torch

    with pytest.raises(ValueError, match="two tokens"):
        make_canary(torch.nn.Linear(1, 1), sequences)


def test_a_deviation_within_the_tolerance_of_the_dtype_passes() -> None:
    check_canary(CHECKPOINT, [[-1.0009, -2.0]], "float32")
    check_canary(CHECKPOINT, [[-1.15, -2.0]], "bfloat16")
    check_canary(CHECKPOINT, [[-1.05, -2.0]], "float16")
    check_canary(replace(CHECKPOINT, canary=None), [[0.0]], "float32")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("seen", [-2.5, float("nan"), float("-inf")])
def test_a_larger_one_names_the_checkpoint_and_itself(seen: float, dtype: str) -> None:
    with pytest.raises(RuntimeError, match=r"'epoch 3' \(here\).*(0\.5|nan|inf).*token 1"):
        check_canary(CHECKPOINT, [[-1.0, seen]], dtype)
