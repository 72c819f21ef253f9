"""Training examples with pictures: rows, lengths, and what is refused before training."""

import pytest
import torch
from PIL import Image

from smmd_bench.contracts import Example
from smmd_bench.encoding.data import TokenisedExamples
from smmd_bench.encoding.pictures import expand
from smmd_bench.encoding.prompts import encode_image_prompts, encode_targets
from smmd_bench.errors import UserError
from smmd_bench.models.processor import load_processor

from ..tiny_vlms import each


def dataset(folder, examples, max_length=256):
    processor = load_processor(folder)
    return TokenisedExamples(examples, processor.tokenizer, max_length, processor=processor)


@each
def test_a_row_is_the_prompt_with_its_picture_and_the_target_alone_is_supervised(
    tiny_vlm, architecture, times
):
    data = dataset(tiny_vlm(architecture), times)
    processor = data.processor
    for i, example in enumerate(times):
        (prompt,) = encode_image_prompts(processor, [example.prompt], [1])
        (target,) = encode_targets(processor.tokenizer, [example.target])
        row, expected = data[i], expand(processor, prompt + target, example.images)
        assert row["input_ids"].shape[1] == data.lengths[i]
        assert torch.equal(row["input_ids"], expected["input_ids"])
        labels = row["labels"][0].tolist()
        assert labels[-len(target) :] == target
        assert set(labels[: -len(target)]) == {-100}


def test_lengths_count_the_tokens_of_pictures(tiny_vlm, tmp_path):
    path = tmp_path / "white.png"
    Image.new("RGB", (112, 112), "white").save(path)
    example = Example("w", "?", "1", None, (path,))
    lengths = dataset(tiny_vlm("qwen2_5_vl"), [example]).lengths
    assert lengths.tolist() == [16 + 2 + 3]  # two about the picture; a prompt, answer and end
    with pytest.raises(UserError, match=r"Training example w has 21 tokens, more than 20"):
        dataset(tiny_vlm("qwen2_5_vl"), [example], max_length=20)
