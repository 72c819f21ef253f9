"""Completions as a frame."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from smmd_bench.plugins.engines.transformers import TransformersEngine

from smmd_bench.contracts import EngineSettings, Example
from smmd_bench.decoding.decode import decode_checkpoint
from smmd_bench.encoding.prompts import encode_prompts
from smmd_bench.errors import UserError


def test_a_row_holds_the_example_its_completion_and_its_attributes(
    tiny_checkpoints: Callable[[str], Any],
) -> None:
    tiny = tiny_checkpoints("digit")
    examples = [
        Example("a", "3+4=", "7", None, attributes={"operations": 1}),
        Example("b", "12+34=", "46", None, attributes={"level": "hard"}),
    ]
    with TransformersEngine().open(tiny.base, EngineSettings()) as session:
        base = tiny.checkpoints["base"]
        frame = decode_checkpoint(session, base, examples, tiny.tokenizer, 5)
        completions = session.generate(
            encode_prompts(tiny.tokenizer, ["3+4=", "12+34="]), base, max_new_tokens=5
        )
    assert frame["uid"].tolist() == ["a", "b"]
    assert frame["target"].tolist() == ["7", "46"]
    assert frame["completion"].tolist() == [completion.text for completion in completions]
    assert frame["completion_tokens"].tolist() == [len(c.token_ids) for c in completions]
    assert frame["prompt_tokens"].tolist() == [4, 6]
    assert frame["operations"].tolist()[0] == 1
    assert frame["level"].tolist()[1] == "hard"


def test_an_attribute_may_not_take_the_name_of_a_column(
    tiny_checkpoints: Callable[[str], Any],
) -> None:
    tiny = tiny_checkpoints("digit")
    examples = [Example("a", "3+4=", "7", None, attributes={"target": 1})]
    with (
        TransformersEngine().open(tiny.base, EngineSettings()) as session,
        pytest.raises(UserError, match="attribute 'target'"),
    ):
        decode_checkpoint(session, tiny.checkpoints["base"], examples, tiny.tokenizer, 2)
