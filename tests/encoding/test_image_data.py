"""Training examples with pictures."""

import torch

from smmd_bench.encoding.data import TokenisedExamples
from smmd_bench.encoding.pictures import expand
from smmd_bench.encoding.prompts import encode_image_prompts, encode_targets
from smmd_bench.models.processor import load_processor

from ..tiny_vlms import each


@each
def test_a_row_is_the_prompt_with_its_picture_and_the_target_alone_is_supervised(
    tiny_vlm, architecture, times
):
    processor = load_processor(tiny_vlm(architecture))
    data = TokenisedExamples(times, processor.tokenizer, 256, processor=processor)
    for i, example in enumerate(times):
        (prompt,) = encode_image_prompts(processor, [example.prompt], [1])
        (target,) = encode_targets(processor.tokenizer, [example.target])
        row, expected = data[i], expand(processor, prompt + target, example.images)
        assert row["input_ids"].shape[1] == data.lengths[i]
        assert torch.equal(row["input_ids"], expected["input_ids"])
        labels = row["labels"][0].tolist()
        assert labels[-len(target) :] == target
        assert set(labels[: -len(target)]) == {-100}
