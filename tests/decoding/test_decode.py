"""Completions as a frame, with pictures and without."""

import pandas as pd
import pytest

from smmd_bench.contracts import Checkpoint, Example
from smmd_bench.decoding.decode import decode_checkpoint
from smmd_bench.encoding.data import expand
from smmd_bench.encoding.prompts import encode_examples, encode_prompts, images_of
from smmd_bench.models.tokenizers import load_processor
from tests.conftest import expect_user_error

pytestmark = pytest.mark.engine


def test_a_row_holds_the_example_its_completion_and_its_attributes(tiny, open_session):
    examples = [
        Example("a", "3+4=", "7", None, attributes={"operations": 1}),
        Example("b", "12+34=", "46", None, attributes={"level": "hard"}),
    ]
    session = open_session(tiny.base)
    base = tiny.checkpoints["base"]
    frame = decode_checkpoint(session, base, examples, tiny.tokenizer, 5)
    prompts = encode_prompts(tiny.tokenizer, ["3+4=", "12+34="])
    completions = session.generate(prompts, base, max_new_tokens=5)

    assert [*frame["uid"]] == ["a", "b"]
    assert [*frame["target"]] == ["7", "46"]
    assert [*frame["completion"]] == [c.text for c in completions]
    lengths = [len(c.token_ids) for c in completions]
    assert [*frame["completion_tokens"]] == lengths
    assert [*frame["prompt_tokens"]] == [4, 6]
    assert frame["operations"][0] == 1
    assert frame["level"][1] == "hard"

    clash = [Example("a", "3+4=", "7", None, attributes={"target": 1})]
    with expect_user_error("attribute 'target'"):
        decode_checkpoint(session, base, clash, tiny.tokenizer, 2)


def test_a_frame_names_the_image_and_counts_its_tokens(tiny_vlm, open_session, times):
    base = Checkpoint("base", "base", tiny_vlm("qwen2_5_vl"))
    session = open_session(base.path)
    processor = load_processor(base.path)
    tokenizer = processor.tokenizer
    text = Example("text", "3+4=", "7", None)
    mixed = [times[0], text]
    frame = decode_checkpoint(session, base, mixed, tokenizer, 4, processor=processor)
    image, no_image = frame["image"]

    assert image == str(times[0].images[0])
    assert pd.isna(no_image)

    prompts = encode_examples(tokenizer, processor, mixed)
    images = images_of(mixed)
    completions = session.generate(prompts, base, max_new_tokens=4, images=images)
    assert [*frame["completion"]] == [c.text for c in completions]

    lengths = []
    for ids, example in zip(prompts, mixed, strict=True):
        row = expand(processor, ids, example.images)
        lengths.append(row["input_ids"].shape[1])
    assert [*frame["prompt_tokens"]] == lengths

    # Examples without images need no processor.
    assert images_of([text]) is None
    assert "image" not in decode_checkpoint(session, base, [text], tokenizer, 2)
