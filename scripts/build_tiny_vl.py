"""Make the tokenizer and the processor of `builtin/tiny-vl`: Qwen2.5-VL's, but small.

    python scripts/build_tiny_vl.py smmd_bench/models/builtin/tiny-vl

Qwen2's own pre-tokenizer over bytes, so one digit a token, with merges learned from the questions
that the model is pre-trained on; a picture becomes 64 to 128 tokens. The same command makes the
same bytes.
"""

from __future__ import annotations

import sys
from pathlib import Path

from _tiny_pictures import pairs_at
from build_tiny_tokenizer import learn_merges, make_tokenizer
from transformers import Qwen2_5_VLProcessor, Qwen2Tokenizer, Qwen2VLImageProcessor
from transformers.models.qwen2_vl.video_processing_qwen2_vl import Qwen2VLVideoProcessor

SPECIAL = (
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>",
    "<|image_pad|>", "<|video_pad|>",
)  # fmt: skip
SMALLEST, LARGEST = 64 * 28 * 28, 128 * 28 * 28
"""Pixels of a picture: it becomes one token for 28 x 28 of them."""
OTHER_SENTENCES = (
    "You are a helpful assistant. The hour hand is short, the minute hand is long.",
    "one two three four five six seven eight nine ten eleven twelve",
)
CHAT_TEMPLATE = """\
{% for message in messages %}<|im_start|>{{ message['role'] }}
{% if message['content'] is string %}{{ message['content'] }}{% else %}\
{% for part in message['content'] %}{% if part['type'] == 'image' %}\
<|vision_start|><|image_pad|><|vision_end|>{% else %}{{ part['text'] }}{% endif %}{% endfor %}\
{% endif %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


def tokenizer() -> Qwen2Tokenizer:
    sentences = [*OTHER_SENTENCES]
    for source in ("charts", "clocks"):
        for index in range(1000):
            pairs = pairs_at(source, "tokenizer", index)
            sentences += [prompt + target for prompt, target in pairs]
    return make_tokenizer(learn_merges(sentences, 760, min_frequency=2), SPECIAL, 4096)


def main(folder: Path) -> None:
    size = {"shortest_edge": SMALLEST, "longest_edge": LARGEST}
    processor = Qwen2_5_VLProcessor(
        image_processor=Qwen2VLImageProcessor(size=size),
        tokenizer=tokenizer(),
        video_processor=Qwen2VLVideoProcessor(),
        chat_template=CHAT_TEMPLATE,
    )
    processor.save_pretrained(folder)
    print(f"{len(processor.tokenizer)} tokens in {folder}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
