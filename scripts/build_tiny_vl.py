"""Make the tokenizer and the processor of `builtin/tiny-vl`: Qwen2.5-VL's, but small.

    python scripts/build_tiny_vl.py smmd_bench/models/builtin/tiny-vl

Qwen2's own pre-tokenizer over bytes, so one digit a token, with merges learned from the questions
that the model is pre-trained on; a picture becomes 64 to 128 tokens. The same command makes the
same bytes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from _tiny_pictures import pairs_at
from tokenizers import Tokenizer, models, trainers
from tokenizers import pre_tokenizers as pre
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
    own = Qwen2Tokenizer()._tokenizer.pre_tokenizer
    learner = Tokenizer(models.BPE())
    learner.pre_tokenizer = own
    alphabet = sorted(pre.ByteLevel.alphabet())
    sentences = [*OTHER_SENTENCES]
    for source in ("charts", "clocks"):
        for index in range(1000):
            pairs = pairs_at(source, "tokenizer", index)
            sentences += [prompt + target for prompt, target in pairs]
    learner.train_from_iterator(
        sentences,
        trainers.BpeTrainer(
            vocab_size=760, show_progress=False, min_frequency=2, initial_alphabet=alphabet
        ),
    )
    model = json.loads(learner.to_str())["model"]
    merges = [(left, right) for left, right in model["merges"]]
    vocabulary = [*alphabet, *("".join(pair) for pair in merges)]
    return Qwen2Tokenizer(
        vocab={token: index for index, token in enumerate(dict.fromkeys(vocabulary))},
        merges=merges,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        unk_token=None,
        additional_special_tokens=list(SPECIAL),
        model_max_length=4096,
        clean_up_tokenization_spaces=False,
    )


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
