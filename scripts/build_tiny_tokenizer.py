"""Make the tokenizer of `builtin/tiny`: Qwen2's, but small; one token a digit.

    python scripts/build_tiny_tokenizer.py smmd_bench/models/builtin/tiny

Qwen2's own pre-tokenizer over bytes, so that transformers and vLLM keep it as it is. The merges are
learned from the text that the checkpoint is pre-trained on, of words alone: operators and brackets
stay single characters, but for the space before them. The same command makes the same bytes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from _tiny_text import SOURCES
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import Qwen2Tokenizer

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
EXAMPLES = 4_000
"""Of each source; a merge has to be of use in one of a hundred of them."""
VOCABULARY = 1_024
MODEL_MAX_LENGTH = 16_384


def learned(texts: list[str], vocabulary: int, min_frequency: int) -> Qwen2Tokenizer:
    """A Qwen2 tokenizer of at most `vocabulary` tokens; no merge joins two marks or digits."""
    learner = Tokenizer(models.BPE())
    learner.pre_tokenizer = Qwen2Tokenizer()._tokenizer.pre_tokenizer
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    learner.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=vocabulary - len(SPECIAL),
            show_progress=False,
            min_frequency=min_frequency,
            initial_alphabet=alphabet,
        ),
    )
    merges = []
    kept = set(alphabet)
    for left, right in json.loads(learner.to_str())["model"]["merges"]:
        written = left + right
        letters = written.lstrip("Ġ").isalpha()
        if {left, right} <= kept and (letters or (left == "Ġ" and len(right) == 1)):
            merges.append((left, right))
            kept.add(written)
    return Qwen2Tokenizer(
        vocab={t: i for i, t in enumerate([*alphabet, *("".join(m) for m in merges)])},
        merges=merges,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        unk_token=None,
        additional_special_tokens=SPECIAL,
        model_max_length=MODEL_MAX_LENGTH,
        clean_up_tokenization_spaces=False,
    )


def main(folder: Path) -> None:
    texts = [
        prompt + target
        for name, source in SOURCES.items()
        if name != "stories"  # the words of the tasks
        for prompt, target in source("tokenizer", "train", EXAMPLES)
    ]
    tokenizer = learned(texts, VOCABULARY, min_frequency=EXAMPLES // 100)
    tokenizer.save_pretrained(folder)
    print(f"{len(tokenizer)} tokens in {folder}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
